import { useCallback, useEffect, useState } from 'preact/hooks'
import { get } from './api.js'
import { every } from './machine.js'
import { useSession } from './session.js'
import { wordsOf } from './visible.js'

/** What a view shows that no event brings. `everyMs` 0: it is loaded once, and when asked. */
export function usePolled<T>(path: string, everyMs: number) {
  const { route, isPaused, failed } = useSession()
  const [data, setData] = useState<T | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [isBusy, setBusy] = useState(false)
  const { space } = route

  const load = useCallback(async () => {
    setBusy(true)
    try {
      setData(await get<T>(path, { space }))
      setProblem(null)
    } catch (error) {
      failed(error)
      setProblem(wordsOf(error))
    } finally {
      setBusy(false)
    }
  }, [failed, path, space])

  useEffect(() => {
    load()
  }, [load])
  useEffect(() => {
    if (everyMs === 0 || isPaused) return
    return every(everyMs, () => {
      if (!document.hidden) load()
    })
  }, [everyMs, isPaused, load])
  return { data, problem, isBusy, load }
}
