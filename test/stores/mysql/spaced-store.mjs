// How other processes reach a store with spaces of its own: the prefix comes after `#` in the URL.
import { mysql } from 'holdfast/mysql'
import { spaced } from '../spaced.mjs'

export default function open(url) {
  const [address, prefix] = url.split('#')
  return spaced(mysql(address), prefix)
}
