import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { ServerInfo } from '../shapes.js'
import { get, RefusedRequest } from './api.js'
import { AuditView } from './audit.js'
import { Banners } from './banners.js'
import { freezeClock } from './clock.js'
import { DoctorView } from './doctor.js'
import { type Connection, Feed } from './feed.js'
import { Header } from './header.js'
import { later } from './machine.js'
import { ResourceView } from './resource.js'
import { ResourcesView } from './resources.js'
import { hashOf, type Route, routeOf } from './route.js'
import { SessionContext } from './session.js'
import { SignIn } from './sign-in.js'
import { StandingView } from './standing.js'
import { wordsOf } from './visible.js'

const NEXT_TRY_MS = 3000

/** The page: signs in, keeps one stream of events open, and shows the view that the address names. */
export function App() {
  const [route, setRoute] = useState(() => routeOf(location.hash))
  const [info, setInfo] = useState<ServerInfo | null>(null)
  const [isSignedOut, setSignedOut] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const [trouble, setTrouble] = useState<string | null>(null)
  const [connection, setConnection] = useState<Connection>({ isOpen: true, attempt: 0, retryAtMs: null })
  const [isPaused, setPaused] = useState(false)
  const feed = useMemo(() => new Feed(setConnection), [])
  const main = useRef<HTMLElement>(null)

  const failed = useCallback((error: unknown) => {
    if (error instanceof RefusedRequest && error.status === 401) setSignedOut(true)
  }, [])

  const load = useCallback(() => {
    const known = (loaded: ServerInfo): void => {
      setInfo(loaded)
      setSignedOut(false)
      setProblem(null)
    }
    get<ServerInfo>('api/info').then(known, (error: unknown) => {
      failed(error)
      setProblem(wordsOf(error))
    })
  }, [failed])

  useEffect(load, [load])
  useEffect(() => (problem && !isSignedOut && !info ? later(load, NEXT_TRY_MS) : undefined))

  useEffect(() => {
    const listener = (): void => setRoute(routeOf(location.hash))
    addEventListener('hashchange', listener)
    return () => removeEventListener('hashchange', listener)
  }, [])

  // Another view begins at its top, and a screen reader reads on from there.
  const place = `${route.view} ${route.name}`
  const lastPlace = useRef(place)
  useEffect(() => {
    if (lastPlace.current === place) return
    lastPlace.current = place
    scrollTo(0, 0)
    main.current?.focus({ preventScroll: true })
  }, [place])

  const isLive = info !== null && !isSignedOut && !isPaused
  const watched = route.view === 'resource' ? route.name : ''
  useEffect(() => {
    if (!isLive) return
    feed.open({ space: route.space, resource: watched })
    return () => feed.close()
  }, [feed, isLive, route.space, watched])

  // A stream is refused without saying why; a request says whether the token is still good.
  useEffect(() => {
    if (connection.attempt === 1 && isLive) get('api/info').catch(failed)
  }, [connection.attempt, failed, isLive])

  useEffect(() => {
    const ends = [
      feed.on('trouble', ({ message }: { message?: string }) => setTrouble(message ?? 'It gives no reason.')),
      feed.on('fine', () => setTrouble(null)),
      // A stream that begins after the trouble gets the list, and no `fine`.
      feed.on('resources', () => setTrouble(null)),
    ]
    return () => {
      for (const end of ends) end()
    }
  }, [feed])

  const isStale = isPaused || trouble !== null || !connection.isOpen
  useEffect(() => freezeClock(isStale), [isStale])

  const go = useCallback((to: Partial<Route>, isStep = true) => {
    const hash = hashOf({ ...routeOf(location.hash), ...to })
    if (isStep) location.hash = hash
    else {
      history.replaceState(null, '', hash)
      setRoute(routeOf(hash))
    }
  }, [])

  if (isSignedOut) return <SignIn onDone={load} />
  if (!info) return <Waiting problem={problem} />
  const session = { info, route, feed, isPaused, go, failed }
  const isGreyed = trouble !== null || !connection.isOpen
  return (
    <SessionContext.Provider value={session}>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the content
      </button>
      <Header
        isConnected={connection.isOpen}
        isStale={isGreyed}
        onPause={() => setPaused(!isPaused)}
        onSignedOut={() => setSignedOut(true)}
      />
      <Banners trouble={trouble} connection={connection} onRetry={() => feed.retry()} />
      <main id="main" ref={main} tabIndex={-1} class={isGreyed ? 'stale' : ''}>
        <Shown route={route} />
      </main>
    </SessionContext.Provider>
  )
}

/** A key for each place, so that nothing of one resource stays in the view of another. */
function Shown({ route }: { route: Route }) {
  const { view, name, space } = route
  if (view === 'resource') return <ResourceView key={`${space}\n${name}`} />
  if (view === 'standing') return <StandingView key={space} />
  if (view === 'doctor') return <DoctorView key={space} />
  if (view === 'audit') return <AuditView />
  return <ResourcesView key={space} />
}

function Waiting({ problem }: { problem: string | null }) {
  return (
    <main class="alone" aria-live="polite">
      {problem ? (
        <>
          <h1>No connection</h1>
          <p>{problem} The page tries again.</p>
        </>
      ) : (
        <p class="faint">Loading …</p>
      )}
    </main>
  )
}
