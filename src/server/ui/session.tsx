import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { ServerInfo } from '../shapes.js'
import { Feed } from './feed.js'
import type { Route } from './route.js'

/** What every view needs. */
export type Session = {
  info: ServerInfo
  route: Route
  feed: Feed
  /** The reader has stopped the updates. */
  isPaused: boolean
  /** Shows another part of the page; `isStep` leaves a step to go back to. */
  go(route: Partial<Route>, isStep?: boolean): void
  /** To be called with each failed request: one that lacks the token leads to the sign-in form. */
  failed(error: unknown): void
}

const unused = (): void => {}

export const SessionContext = createContext<Session>({
  info: {
    version: '',
    store: '',
    spaces: null,
    space: '',
    allowChanges: false,
    allowLocks: false,
    user: null,
    pushes: false,
  },
  route: {
    view: 'resources',
    name: '',
    space: '',
    filter: { search: '', prefix: '', state: '', host: '', label: '', sort: '' },
  },
  feed: new Feed(unused),
  isPaused: false,
  go: unused,
  failed: unused,
})

export function useSession(): Session {
  return useContext(SessionContext)
}
