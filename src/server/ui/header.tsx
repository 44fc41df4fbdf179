import { useState } from 'preact/hooks'
import { post } from './api.js'
import { Icon } from './icons.js'
import { hashOf, NO_FILTER, type View } from './route.js'
import { useSession } from './session.js'
import { applyTheme, storedTheme, type Theme, themeAfter } from './theme.js'
import { visible } from './visible.js'

const TABS: readonly { view: View; title: string }[] = [
  { view: 'resources', title: 'Resources' },
  { view: 'standing', title: 'Elections and jobs' },
  { view: 'doctor', title: 'Doctor' },
  { view: 'audit', title: 'Audit log' },
]

export function Header(props: {
  isConnected: boolean
  isStale: boolean
  onPause(): void
  onSignedOut(): void
}) {
  const { info, route, isPaused } = useSession()
  const shown = route.view === 'resource' ? 'resources' : route.view
  const state = isPaused ? 'Paused' : !props.isConnected ? 'Offline' : props.isStale ? 'Stale' : 'Live'
  return (
    <header class="top">
      <a
        class="brand"
        href={hashOf({ space: route.space })}
        title={`Holdfast ${info.version} on ${info.store}`}
      >
        <Icon name="lock" /> <span>Holdfast</span>
      </a>
      <SpaceChoice />
      <nav aria-label="Views">
        {TABS.map(({ view, title }) => (
          <a
            key={view}
            href={hashOf({ view, space: route.space, filter: NO_FILTER })}
            aria-current={view === shown ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <div class="tools">
        <button
          type="button"
          class={`live ${state.toLowerCase()}`}
          aria-pressed={isPaused}
          aria-label={isPaused ? 'Paused. Continue the updates' : `${state}. Pause the updates`}
          title={isPaused ? 'Continue the updates' : 'Pause the updates'}
          onClick={props.onPause}
        >
          <span class="dot" />
          <span class="word">{state}</span>
          <Icon name={isPaused ? 'play' : 'pause'} />
        </button>
        <ThemeSwitch />
        {info.user !== null && <SignOut user={info.user} onDone={props.onSignedOut} />}
      </div>
    </header>
  )
}

function SpaceChoice() {
  const { info, route, go } = useSession()
  const current = route.space || info.space
  const spaces = [...new Set([current, ...(info.spaces ?? [])])].sort()
  if (spaces.length < 2) return <span class="space">{visible(current)}</span>
  return (
    <label class="space">
      <span class="unseen">Space</span>
      <select
        value={current}
        onChange={(event) => go({ view: 'resources', space: event.currentTarget.value })}
      >
        {spaces.map((space) => (
          <option key={space} value={space}>
            {visible(space)}
          </option>
        ))}
      </select>
    </label>
  )
}

function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(storedTheme)
  const change = (): void => {
    const next = themeAfter(theme)
    applyTheme(next)
    setTheme(next)
  }
  const title = `Colours: ${theme}`
  return (
    <button type="button" class="plain" onClick={change} title={title} aria-label={title}>
      <Icon name={theme} />
    </button>
  )
}

function SignOut({ user, onDone }: { user: string; onDone(): void }) {
  const leave = (): void => {
    post('logout', {}).then(onDone, onDone)
  }
  return (
    <button type="button" class="plain" onClick={leave} title={`Signed in as ${visible(user)}`}>
      Sign out
    </button>
  )
}
