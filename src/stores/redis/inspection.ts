import type { Finding, InspectQuery, LineView, StateValue, StateView } from '../../contract/store.js'
import type { RedisBackend } from './backend.js'
import { checkMaster } from './check.js'
import { explain } from './failures.js'
import { viewScript } from './lua/view.js'
import type { RedisNames } from './names.js'
import { lineView } from './view.js'

/** A call for each line costs more than the line. A call for many would hold up the server. */
const LINES_OF_ONE_CALL = 20

/** The lines of one space, as they are. `checkOpen` throws once the client is closed. */
export async function* inspectLines(
  backend: RedisBackend,
  names: RedisNames,
  { prefix, resource }: InspectQuery,
  checkOpen: () => void,
): AsyncIterable<LineView> {
  if (resource !== undefined) {
    const [view] = resource.startsWith(prefix) ? await viewLines(backend, names, [resource]) : []
    if (view) yield view
    return
  }
  // SCAN may return a key more than once.
  const seen = new Set<string>()
  const driver = await backend.open()
  for await (const keys of driver.scan(names.linePattern(prefix))) {
    const resources = keys.flatMap((key) => names.resourceOf(key) ?? [])
    const calls = inPortions(resources, driver.isCluster ? 1 : LINES_OF_ONE_CALL)
    for (const view of (await Promise.all(calls.map((each) => viewLines(backend, names, each)))).flat()) {
      if (!view || view.claims.length === 0 || seen.has(view.resource)) continue
      seen.add(view.resource)
      yield view
    }
    checkOpen()
  }
}

async function viewLines(
  backend: RedisBackend,
  names: RedisNames,
  resources: readonly string[],
): Promise<(LineView | null)[]> {
  const keys = resources.map((each) => names.line(each))
  const [time, ...hashes] = (await backend.run(viewScript, keys, [])) as [unknown, ...unknown[][]]
  return resources.map((resource, index) => {
    const hash = hashes[index] ?? []
    const fields = new Map<string, string>()
    for (let at = 0; at + 1 < hash.length; at += 2) fields.set(String(hash[at]), String(hash[at + 1]))
    return lineView(resource, Number(time), fields)
  })
}

function inPortions(all: readonly string[], size: number): string[][] {
  const portions: string[][] = []
  for (let at = 0; at < all.length; at += size) portions.push(all.slice(at, at + size))
  return portions
}

/** The states of one space. */
export async function* listStates(
  backend: RedisBackend,
  names: RedisNames,
  prefix: string,
  read: (key: string) => Promise<StateValue | null>,
): AsyncIterable<StateView> {
  const seen = new Set<string>()
  const driver = await backend.open()
  for await (const keys of driver.scan(names.statePattern(prefix))) {
    const fresh = keys.flatMap((key) => names.stateOf(key) ?? []).filter((key) => !seen.has(key))
    for (const key of fresh) seen.add(key)
    const states = await Promise.all(
      [...new Set(fresh)].map(async (key) => ({ key, state: await read(key) })),
    )
    for (const { key, state } of states) if (state) yield { key, ...state }
  }
}

export async function listSpaces(backend: RedisBackend, names: RedisNames): Promise<string[]> {
  const found = new Set<string>()
  const driver = await backend.open()
  for await (const keys of driver.scan(names.everyLinePattern))
    for (const key of keys) {
      const space = names.spaceOf(key)
      if (space !== null) found.add(space)
    }
  return [...found]
}

/** What `locks.check()` says of every master. */
export async function checkMasters(backend: RedisBackend): Promise<Finding[]> {
  const { env, replicas } = backend
  const driver = await backend.open()
  try {
    const masters = await driver.masters()
    const findings = await Promise.all(
      masters.map((master) => checkMaster(master, replicas?.count ?? 0, env)),
    )
    return findings.flat()
  } catch (error) {
    throw explain(error)
  }
}
