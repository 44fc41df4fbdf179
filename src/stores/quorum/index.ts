import { HoldfastError } from '../../base/errors.js'
import type { Store } from '../../contract/store.js'

/** A placeholder: the store over several independent servers is not there yet. */
export function quorum(_members: readonly Store[], _options: object = {}): Store {
  throw new HoldfastError('UNSUPPORTED', 'A lock over several servers is not supported yet; give one client')
}
