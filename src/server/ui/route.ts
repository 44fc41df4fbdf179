/** What the page shows, as the part of its address after `#`, so that it can be shared. */
export type Route = {
  view: View
  /** The resource of the view `resource`. */
  name: string
  space: string
  filter: Filter
}

export type View = 'resources' | 'resource' | 'standing' | 'doctor' | 'audit'

export type Filter = {
  search: string
  prefix: string
  state: string
  host: string
  label: string
  sort: string
}

export const NO_FILTER: Filter = { search: '', prefix: '', state: '', host: '', label: '', sort: '' }

const FILTERS = Object.keys(NO_FILTER) as (keyof Filter)[]
const PLAIN_VIEWS: readonly string[] = ['standing', 'doctor', 'audit']

/** Reads `#/r/order%3A42?space=shop`. What it does not know leads to the list of resources. */
export function routeOf(hash: string): Route {
  const [path = '', query = ''] = splitOnce(hash.replace(/^#?\/?/, ''), '?')
  const parameters = new URLSearchParams(query)
  const filter = { ...NO_FILTER }
  for (const name of FILTERS) filter[name] = parameters.get(name) ?? ''
  const space = parameters.get('space') ?? ''
  const [first = '', rest = ''] = splitOnce(path, '/')
  const name = decoded(rest)
  if (first === 'r' && name !== '') return { view: 'resource', name, space, filter }
  const view = PLAIN_VIEWS.includes(first) ? (first as View) : 'resources'
  return { view, name: '', space, filter }
}

export function hashOf({ view, name, space, filter }: Partial<Route>): string {
  const parameters = new URLSearchParams()
  if (space) parameters.set('space', space)
  for (const key of FILTERS) if (filter?.[key]) parameters.set(key, filter[key])
  const query = parameters.size > 0 ? `?${parameters}` : ''
  const path = view === 'resource' ? `r/${encodeURIComponent(name ?? '')}` : view
  return `#/${path === 'resources' || path === undefined ? '' : path}${query}`
}

/** Whether any part but the order is set. */
export function isFiltering(filter: Filter): boolean {
  return FILTERS.some((key) => key !== 'sort' && filter[key] !== '')
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator)
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** Someone may have typed it: then it names nothing. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
