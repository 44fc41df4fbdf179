import type { StateValue } from '../../contract/store.js'
import { asciiJson, isNumber, isText, parseItem } from './line-item.js'

/** A state as its item has it. */
export interface StateItem {
  readonly space: string
  readonly key: string
  /** Of the value, or of the one that was deleted. */
  readonly version: number
  /** null: deleted. The item stays for a while, so that versions go on. */
  readonly value: string | null
  /** The server's milliseconds; null: it stays until it is deleted. */
  readonly expires: number | null
}

type EncodedState = [
  format: number,
  space: string,
  key: string,
  version: number,
  value: string | null,
  expires: number | null,
]

export function encodeState({ space, key, version, value, expires }: StateItem): string {
  return asciiJson([1, space, key, version, value, expires] satisfies EncodedState)
}

/** null: another program wrote the item. */
export function decodeState(text: string): StateItem | null {
  const item = parseItem(text)
  if (!item || !isState(item)) return null
  const [, space, key, version, value, expires] = item
  return { space, key, version, value, expires }
}

function isState(item: unknown[]): item is EncodedState {
  const [, space, key, version, value, expires] = item
  const isValue = value === null || isText(value)
  return (
    isText(space) && isText(key) && isNumber(version) && isValue && (expires === null || isNumber(expires))
  )
}

/** The value at that time. */
export function currentValue(item: StateItem | null, now: number): StateValue | null {
  if (!item || item.value === null || (item.expires !== null && item.expires <= now)) return null
  return { value: item.value, version: item.version }
}
