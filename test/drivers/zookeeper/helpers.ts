import { afterEach } from 'vitest'
import {
  type SessionEvent,
  ZooKeeperClient,
  ZooKeeperError,
  type ZooKeeperErrorCode,
  type ZooKeeperOptions,
} from '../../../src/drivers/zookeeper/index.js'
import { eventually, inTime, settled } from '../../../src/testing/conformance/checks.js'

/** A client whose session events are noted. */
export class NotedClient extends ZooKeeperClient {
  readonly events: SessionEvent[] = []

  constructor(servers: string, options: ZooKeeperOptions = {}) {
    super(servers, options)
    this.subscribe((event) => this.events.push(event))
  }

  get heard(): string[] {
    return this.events.map(({ type }) => type)
  }

  hears(type: SessionEvent['type']): Promise<void> {
    return eventually(`'${type}' of the session`, () => this.heard.includes(type))
  }
}

const open: NotedClient[] = []

/** Closed after the test. */
export function client(servers: string, options: ZooKeeperOptions = {}): NotedClient {
  const one = new NotedClient(servers, options)
  open.push(one)
  return one
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()))
})

/** The error, which must be a ZooKeeperError with that code. */
export async function failsWith(
  code: ZooKeeperErrorCode,
  promise: Promise<unknown>,
): Promise<ZooKeeperError> {
  const outcome = await inTime(`a rejection with ${code}`, settled(promise))
  if ('value' in outcome) throw new Error(`Resolved instead of rejecting with ${code}`)
  if (!(outcome.error instanceof ZooKeeperError) || outcome.error.code !== code) throw outcome.error
  return outcome.error
}
