import type { Finding, InspectQuery, LineView } from '../../contract/store.js'
import type { RedisBackend } from './backend.js'
import { checkMaster } from './check.js'
import { explain } from './failures.js'
import { viewScript } from './lua/view.js'
import type { RedisNames } from './names.js'
import { lineView } from './view.js'

/** The lines of one space, as they are. `checkOpen` throws once the client is closed. */
export async function* inspectLines(
  backend: RedisBackend,
  names: RedisNames,
  { prefix, resource }: InspectQuery,
  checkOpen: () => void,
): AsyncIterable<LineView> {
  if (resource !== undefined) {
    const view = resource.startsWith(prefix) ? await viewLine(backend, names, resource) : null
    if (view) yield view
    return
  }
  // SCAN may return a key more than once.
  const seen = new Set<string>()
  const driver = await backend.open()
  for await (const keys of driver.scan(names.linePattern(prefix))) {
    const resources = keys.flatMap((key) => names.resourceOf(key) ?? [])
    for (const view of await Promise.all(resources.map((each) => viewLine(backend, names, each)))) {
      if (!view || view.claims.length === 0 || seen.has(view.resource)) continue
      seen.add(view.resource)
      yield view
    }
    checkOpen()
  }
}

async function viewLine(
  backend: RedisBackend,
  names: RedisNames,
  resource: string,
): Promise<LineView | null> {
  const [time, hash] = (await backend.run(viewScript, names.line(resource), [])) as [unknown, unknown[]]
  const fields = new Map<string, string>()
  for (let at = 0; at + 1 < hash.length; at += 2) fields.set(String(hash[at]), String(hash[at + 1]))
  return lineView(resource, Number(time), fields)
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
