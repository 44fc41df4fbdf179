import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ResourceChanges, ResourceList, ResourceSummary, SpaceTotals } from '../shapes.js'
import { get } from './api.js'
import { setClock } from './clock.js'
import { later } from './machine.js'
import { type Page, Pages } from './pages.js'
import { useSession } from './session.js'
import { wordsOf } from './visible.js'

const PAGE_SIZE = 100
const REFRESH_MS = 1000
const TYPING_MS = 150

/** A summary, with the moments from which its times count on. */
export type Row = ResourceSummary & { heldSinceMs: number | null; waitSinceMs: number | null }

function rowOf(summary: ResourceSummary, asOf: string): Row {
  const nowMs = Date.parse(asOf)
  const before = (ms: number | null): number | null => (ms === null ? null : nowMs - ms)
  return { ...summary, heldSinceMs: before(summary.heldMs), waitSinceMs: before(summary.oldestWaitMs) }
}

export type Listed = {
  pages: Pages<Row>
  totals: (SpaceTotals & { waitSinceMs: number | null }) | null
  problem: string | null
  see(first: number, last: number): void
}

/**
 * The resources that the filter lets through, as pages of the server's order. Events change the rows
 * in place at once; where that may change the order, the rows in sight are loaded again soon.
 */
export function useResourceList(): Listed {
  const { route, feed, isPaused, failed } = useSession()
  const [, setVersion] = useState(0)
  const [totals, setTotals] = useState<Listed['totals']>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const sight = useRef({ first: 0, last: 40 })
  const query = JSON.stringify({ ...route.filter, space: route.space })

  const takeTotals = useCallback((next: SpaceTotals) => {
    setClock(next.asOf)
    const { longestWaitMs: longestMs } = next
    setTotals({ ...next, waitSinceMs: longestMs === null ? null : Date.parse(next.asOf) - longestMs })
  }, [])

  const pages = useMemo(() => {
    const load = async (offset: number, limit: number): Promise<Page<Row>> => {
      const parameters = JSON.parse(query) as Record<string, string>
      const page = await get<ResourceList>('api/resources', { ...parameters, offset, limit })
      takeTotals(page)
      return { total: page.found, items: page.resources.map((each) => rowOf(each, page.asOf)) }
    }
    return new Pages<Row>(PAGE_SIZE, load, () => setVersion((version) => version + 1))
  }, [query, takeTotals])

  const tried = useCallback(
    (asked: Promise<void>) => {
      asked.then(
        () => setProblem(null),
        (error: unknown) => {
          failed(error)
          setProblem(wordsOf(error))
        },
      )
    },
    [failed],
  )

  useEffect(() => {
    const stop = later(() => tried(pages.ensure(sight.current.first, sight.current.last)), TYPING_MS)
    return () => {
      stop()
      pages.end()
    }
  }, [pages, tried])

  useEffect(() => {
    if (isPaused) return
    let stop: (() => void) | null = null
    const refresh = (): void => {
      stop = null
      if (document.hidden) return
      tried(pages.refresh(sight.current.first, sight.current.last))
    }
    const take = (changes: ResourceChanges): void => {
      const { isAll, changed, gone, asOf } = changes
      takeTotals(changes)
      const fresh = new Map(changed.map((each) => [each.name, rowOf(each, asOf)]))
      if (fresh.size > 0) pages.replace((row) => fresh.get(row.name) ?? row)
      if (isAll || fresh.size > 0 || gone.length > 0) stop ??= later(refresh, REFRESH_MS)
    }
    const end = feed.on('resources', take)
    const seen = (): void => refresh()
    document.addEventListener('visibilitychange', seen)
    return () => {
      end()
      stop?.()
      document.removeEventListener('visibilitychange', seen)
    }
  }, [feed, isPaused, pages, takeTotals, tried])

  const see = useCallback(
    (first: number, last: number) => {
      sight.current = { first, last }
      if (pages.total !== null) tried(pages.ensure(first, last))
    },
    [pages, tried],
  )
  return { pages, totals, problem, see }
}
