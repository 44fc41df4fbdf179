import { expect } from 'vitest'
import { ZooKeeperClient } from '../../src/drivers/zookeeper/index.js'
import { Holdfast } from '../../src/primitives/holdfast.js'
import { zookeeper } from '../../src/stores/zookeeper/index.js'
import { eventually } from '../../src/testing/conformance/checks.js'
import type { ZooKeeperEnsemble, ZooKeeperServer } from '../servers/zookeeper.js'
import { Crowd } from './crowd.js'
import { judged } from './runs.js'

const RESOURCES = ['one', 'two', 'three']
const TICK_MS = 200
export const SESSION_MS = 3000

/**
 * A client with a session of its own among those with other numbers: it can be told by its
 * time-out, too.
 */
export function clientAt(servers: string, number: number): Holdfast {
  return new Holdfast(zookeeper(servers, { sessionTimeout: SESSION_MS + number, tick: TICK_MS }))
}

/**
 * A crowd of six; each address is asked by as many. The last three share a session with a client
 * that outlives them.
 */
export class ZooKeeperCrowd extends Crowd {
  readonly #survivor: Holdfast

  constructor(addresses: readonly string[]) {
    const at = (number: number): string => addresses[number % addresses.length] ?? ''
    const alone = [1, 2, 3].map((number) => clientAt(at(number), number))
    const together = [1, 2, 3].map(() => clientAt(at(0), 0))
    const clients = [...alone, ...together]
    super({ clients, resources: RESOURCES, leaseMs: SESSION_MS, askedLeaseMs: 10 * SESSION_MS })
    this.#survivor = clientAt(at(0), 0)
  }

  /**
   * Ends it, with the judge's verdict; fails also where a node is left in a line, though the
   * session lives on.
   */
  async judged(servers: string): Promise<void> {
    // Its signal is taken, so that it is not taken for forgotten.
    const { signal } = await this.#survivor.mutex('survivor').acquire()
    signal.throwIfAborted()
    await judged(this)
    const zk = new ZooKeeperClient(servers)
    try {
      const isEmpty = async (): Promise<boolean> => (await leftEverywhere(servers)).length === 0
      await eventually('no session but those of the survivor and ours', isEmpty).catch(async (error) => {
        throw new Error(
          `${error.message}; survivor: ${await nodesOf(zk, 'survivor')}; ${await allLeft(servers)}`,
        )
      })
      expect((await nodesOf(zk, 'survivor')).length).toBe(1)
    } finally {
      await zk.close()
      await this.#survivor.close()
    }
  }
}

/** The member to which the session with that number is connected. */
export async function serverOf(ensemble: ZooKeeperEnsemble, number: number): Promise<ZooKeeperServer> {
  let found: ZooKeeperServer | undefined
  await eventually(`the server of session ${number}`, async () => {
    for (const member of ensemble.members) {
      const connections = await member.ask('cons').catch(() => '')
      if (connections.includes(`to=${SESSION_MS + number},`)) found = member
    }
    return found !== undefined
  })
  if (!found) throw new Error('no server')
  return found
}

export async function serving(ensemble: ZooKeeperEnsemble, count: number): Promise<void> {
  await eventually(`${count} servers`, async () => (await ensemble.serving()).length >= count, 60_000)
}

/** What each server takes itself for. */
export function modesOf(ensemble: ZooKeeperEnsemble): Promise<string[]> {
  return Promise.all(ensemble.members.map((member) => member.mode().catch(String)))
}

/**
 * The nodes that every server shows. Versions before 3.9.3 have a fault (ZOOKEEPER-4712): a leader
 * that comes back after a kill may show nodes that no other server has. No client can remove these.
 */
async function leftEverywhere(servers: string): Promise<string[]> {
  const [first, ...others] = await views(servers)
  return (first?.left ?? []).filter((node) => others.every(({ left }) => left.includes(node)))
}

async function allLeft(servers: string): Promise<string> {
  return (await views(servers)).map(({ server, left }) => `left at ${server}: ${left}`).join('; ')
}

function views(servers: string): Promise<{ server: string; left: string[] }[]> {
  const looks = servers.split(',').map(async (server) => {
    const zk = new ZooKeeperClient(server)
    try {
      return { server, left: await leftAt(zk) }
    } finally {
      await zk.close()
    }
  })
  return Promise.all(looks)
}

async function leftAt(zk: ZooKeeperClient): Promise<string[]> {
  await zk.sync()
  return (await Promise.all(RESOURCES.map((name) => nodesOf(zk, name)))).flat()
}

/** The nodes of a line, each with its session. */
async function nodesOf(zk: ZooKeeperClient, name: string): Promise<string[]> {
  const path = `/holdfast/default/lines/${name}`
  const { stat } = await zk.exists(path)
  const { children } = stat ? await zk.getChildren(path) : { children: [] }
  return Promise.all(
    children.map(async (child) => {
      const { stat: found } = await zk.exists(`${path}/${child}`)
      return `${name}/${child} of ${found?.ephemeralOwner.toString(16)}`
    }),
  )
}
