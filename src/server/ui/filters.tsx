import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'
import { countText } from './format.js'
import { Icon } from './icons.js'
import { type Filter, isFiltering, NO_FILTER } from './route.js'
import { useSession } from './session.js'

const STATES = [
  { value: '', title: 'All' },
  { value: 'held', title: 'Held' },
  { value: 'waited', title: 'Waited for' },
]
const SORTS = [
  { value: '', title: 'Contended' },
  { value: 'oldest', title: 'Longest wait' },
  { value: 'name', title: 'Name' },
]

/** Search and filters. They stand in the address, so a link shows the same. */
export function Filters(props: {
  searchField: RefObject<HTMLInputElement | null>
  found: number | null
  onEnter(): void
}) {
  const { route, go } = useSession()
  const { filter } = route
  const [isOpen, setOpen] = useState(() =>
    ['prefix', 'host', 'label'].some((key) => filter[key as 'host'] !== ''),
  )
  const set = (part: Partial<Filter>): void => go({ filter: { ...filter, ...part } }, false)
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'ArrowDown' || event.key === 'Enter') {
      event.preventDefault()
      props.onEnter()
    } else if (event.key === 'Escape') {
      if (filter.search === '') props.searchField.current?.blur()
      else set({ search: '' })
    }
  }
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <div class="search">
        <Icon name="search" />
        <input
          ref={props.searchField}
          type="search"
          aria-label="Search by name"
          placeholder="Search"
          aria-keyshortcuts="/"
          value={filter.search}
          onInput={(event) => set({ search: event.currentTarget.value })}
          onKeyDown={onKeyDown}
        />
        <kbd>/</kbd>
      </div>
      <Choice title="State" value={filter.state} choices={STATES} onChange={(state) => set({ state })} />
      <Choice title="Order" value={filter.sort} choices={SORTS} onChange={(sort) => set({ sort })} />
      <button type="button" aria-expanded={isOpen} aria-label="More filters" onClick={() => setOpen(!isOpen)}>
        <Icon name="filter" /> <span class="words">More</span>
      </button>
      <span class="found" role="status">
        {props.found !== null && `${countText(props.found)} ${isFiltering(filter) ? 'found' : 'in all'}`}
      </span>
      {isOpen && (
        <div class="more-filters">
          <Field title="Prefix" value={filter.prefix} onInput={(prefix) => set({ prefix })} />
          <Field title="Host" value={filter.host} onInput={(host) => set({ host })} />
          <Field title="Label" value={filter.label} onInput={(label) => set({ label })} />
          <button type="button" class="plain" onClick={() => set({ ...NO_FILTER, sort: filter.sort })}>
            Clear
          </button>
        </div>
      )}
    </form>
  )
}

function Choice(props: {
  title: string
  value: string
  choices: readonly { value: string; title: string }[]
  onChange(value: string): void
}) {
  return (
    <label class="choice">
      <span class="unseen">{props.title}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.choices.map(({ value, title }) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </label>
  )
}

function Field(props: { title: string; value: string; onInput(value: string): void }) {
  return (
    <label class="field">
      <span>{props.title}</span>
      <input
        type="text"
        spellcheck={false}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  )
}
