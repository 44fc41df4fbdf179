import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Party, ResourceDetail } from '../shapes.js'
import { get } from './api.js'
import { setClock } from './clock.js'
import { later } from './machine.js'
import { Pages } from './pages.js'
import { useSession } from './session.js'
import { wordsOf } from './visible.js'

const PAGE_SIZE = 200
const REFRESH_MS = 1000

/** Where the API keeps a resource. The name is a parameter: browsers would fold a path of dots. */
export function pathOf(action = ''): string {
  return action === '' ? 'api/resource' : `api/resource/${action}`
}

export type Detail = {
  resource: ResourceDetail | null
  waiters: Pages<Party>
  problem: string | null
  see(first: number, last: number): void
  reload(): void
}

/** One resource, live. The first waiters come with each event; those in sight beyond are fetched. */
export function useDetail(name: string): Detail {
  const { route, feed, isPaused, failed } = useSession()
  const [resource, setResource] = useState<ResourceDetail | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [, setVersion] = useState(0)
  const sight = useRef({ first: 0, last: 40 })
  const { space } = route

  const waiters = useMemo(() => {
    const load = async (offset: number, limit: number) => {
      const page = await get<ResourceDetail>(pathOf(), { name, space, offset, limit })
      setClock(page.asOf)
      if (offset === 0) setResource(page)
      return { total: page.waitersTotal, items: page.waiters }
    }
    return new Pages<Party>(PAGE_SIZE, load, () => setVersion((version) => version + 1))
  }, [name, space])

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

  const reload = useCallback(() => tried(waiters.refresh(0, sight.current.last)), [tried, waiters])
  useEffect(() => {
    reload()
    return () => waiters.end()
  }, [reload, waiters])

  useEffect(() => {
    if (isPaused) return
    let stop: (() => void) | null = null
    const refresh = (): void => {
      stop = null
      tried(waiters.refresh(sight.current.first, sight.current.last))
    }
    const end = feed.on('resource', (fresh: ResourceDetail) => {
      if (fresh.name !== name) return
      setClock(fresh.asOf)
      setResource(fresh)
      setProblem(null)
      waiters.put(0, fresh.waitersTotal, fresh.waiters)
      if (sight.current.last >= fresh.waiters.length && fresh.waitersTotal > fresh.waiters.length)
        stop ??= later(refresh, REFRESH_MS)
    })
    return () => {
      end()
      stop?.()
    }
  }, [feed, isPaused, name, tried, waiters])

  const see = useCallback(
    (first: number, last: number) => {
      sight.current = { first, last }
      if (waiters.total !== null) tried(waiters.ensure(first, last))
    },
    [tried, waiters],
  )
  return { resource, waiters, problem, see, reload }
}
