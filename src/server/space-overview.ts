import { EXCLUSIVE } from '../contract/constants.js'
import type { HolderView, WaiterView } from '../primitives/views.js'
import { iso } from './lines.js'
import type { Party, SpaceOverview } from './shapes.js'
import type { Space } from './spaces.js'

/** Many viewers ask the store as often as one does. */
const KEPT_MS = 1000
/** The candidates of an election that are shown. */
const MOST_CANDIDATES = 100

/** The overviews of all spaces, each for a moment. */
export class Overviews {
  readonly #kept = new WeakMap<Space, { readonly at: number; readonly found: Promise<SpaceOverview> }>()

  of(space: Space): Promise<SpaceOverview> {
    const { env } = space.context.engine
    const kept = this.#kept.get(space)
    if (kept && env.now() - kept.at < KEPT_MS) return kept.found
    const found = read(space)
    this.#kept.set(space, { at: env.now(), found })
    return found
  }
}

async function read({ locks }: Space): Promise<SpaceOverview> {
  const { elections, latches, barriers, once } = await locks.overview()
  return {
    elections: elections.map(({ name, leader, term, leaders, candidates }) => ({
      name,
      leader: leader && partyOfView(leader),
      term,
      leaders: leaders.map(({ id, term: of, since }) => ({
        id,
        term: of,
        since: since && iso(since.getTime()),
      })),
      candidates: candidates.slice(0, MOST_CANDIDATES).map(partyOfView),
    })),
    latches,
    barriers,
    once: once.map(({ name, running, last }) => ({
      name,
      running: running && partyOfView(running),
      last: last && { began: iso(last.began.getTime()), keptUntil: iso(last.keptUntil.getTime()) },
    })),
  }
}

function partyOfView(view: WaiterView | HolderView): Party {
  const { id, owner, host, pid, label, permits, since, expires } = view
  return {
    id,
    owner,
    host,
    pid,
    label,
    permits,
    isWriter: permits === EXCLUSIVE,
    since: iso(since.getTime()),
    expires: iso(expires.getTime()),
    fence: 'fence' in view ? view.fence : null,
  }
}
