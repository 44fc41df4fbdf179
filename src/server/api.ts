import { checkName } from '../base/names.js'
import type { Audit } from './audit.js'
import { type HttpCall, json } from './call.js'
import { detailOf, emptyLine, type SeenLine, seenLine } from './lines.js'
import type { ServerOptions } from './options.js'
import { version } from './page.js'
import { Problem } from './problems.js'
import { listResources, readPage } from './resource-list.js'
import type { Route } from './router.js'
import type { ResourceDetail, ServerInfo } from './shapes.js'
import { Overviews } from './space-overview.js'
import type { Space, Spaces } from './spaces.js'
import type { Streams } from './streams.js'

/** What the page reads. */
export interface ApiContext {
  readonly options: ServerOptions
  readonly spaces: Spaces
  readonly streams: Streams
  readonly audit: Audit
}

export function apiRoutes({ options, spaces, streams, audit }: ApiContext): Route[] {
  const overviews = new Overviews()
  const get = (
    path: string,
    answer: (call: HttpCall, space: Space) => Promise<Response> | Response,
  ): Route => ({
    method: 'GET',
    path,
    access: 'users',
    answer: async (call) => answer(call, await spaces.of(call.url.searchParams.get('space'))),
  })
  const detail = async (call: HttpCall, space: Space): Promise<Response> =>
    json(await readDetail(call, space))
  return [
    get('api/info', async ({ user }) => json(await readInfo(spaces, options, user))),
    get('api/resources', async ({ url }, { poller }) => {
      await poller.fresh()
      return json(listResources(poller, url.searchParams))
    }),
    get('api/resources/{name}', detail),
    get('api/resource', detail),
    get('api/overview', async (_, space) => json(await overviews.of(space))),
    get('api/doctor', async (_, { locks }) => json({ findings: await locks.check() })),
    get('api/events', ({ url }, { feed }) => streams.open(feed, url.searchParams.get('resource'))),
    get('api/audit', () => json({ entries: audit.entries })),
  ]
}

async function readInfo(spaces: Spaces, options: ServerOptions, user: string | null): Promise<ServerInfo> {
  const { engine } = spaces.home.context
  return {
    version: version(),
    store: engine.storeName,
    // A page that cannot learn the spaces still shows the first one, and its trouble.
    spaces: await spaces.list().catch(() => null),
    space: engine.space,
    allowChanges: options.allowChanges,
    allowLocks: options.allowLocks,
    user,
    pushes: engine.capabilities.askNextEveryMs === null,
  }
}

/** The name in the path, or in the query: `.` and `..` cannot be part of a path. */
export function nameOf({ params, url }: HttpCall): string {
  return checkName(params['name'] ?? url.searchParams.get('name') ?? '', 'The name of a resource')
}

export async function readDetail(call: HttpCall, space: Space): Promise<ResourceDetail> {
  const name = nameOf(call)
  const { poller, context } = space
  const line = await findLine(space, name)
  const nowMs = context.engine.env.wallMs()
  const timeline = poller.timeline.of(name, line ?? undefined, nowMs)
  if (!line && timeline.length === 0) throw nobodyIn()
  const page = readPage(call.url.searchParams, 200)
  return { ...detailOf(line ?? emptyLine(name), nowMs, page), timeline }
}

export function nobodyIn(): Problem {
  return new Problem('NOT_FOUND', 'Nobody holds it, and nobody waits')
}

/** From the poller where it runs anyway, so that many viewers cost the store as much as one. */
async function findLine({ poller, context }: Space, name: string): Promise<SeenLine | null> {
  if (poller.isWatched) await poller.fresh()
  const known = poller.lines.get(name)
  if (poller.isWatched && known) return known
  const line = await context.operator.line(name)
  return line && seenLine(line, context.engine.env.wallMs(), known)
}
