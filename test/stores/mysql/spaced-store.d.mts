import type { Store } from '../../../src/contract/store.js'

export function spaced(store: Store, prefix: string): Store
export default function open(url: string): Store
