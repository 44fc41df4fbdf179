// How a process of the suite reaches a store that Holdfast.open does not know.
import { sqlite } from 'holdfast/sqlite'

export default (url) => sqlite(url.replace(/^elsewhere:/, ''))
