import { notSupported } from './dom-exception.js'
import type { LockGrantedCallback, LockMode } from './types.js'

/** The arguments of `request`, converted. */
export interface LockRequest {
  readonly name: string
  readonly mode: LockMode
  readonly ifAvailable: boolean
  readonly steal: boolean
  readonly signal: AbortSignal | undefined
  readonly callback: LockGrantedCallback<unknown>
}

/** Converts the arguments as Web IDL does; throws TypeErrors. */
export function toRequest(name: unknown, options: unknown, callback: unknown): LockRequest {
  // String() would accept a symbol.
  return { name: `${name}`, ...toOptions(options), callback: toCallback(callback) }
}

/** Throws a NotSupportedError for options that exclude each other. */
export function checkRequest({ name, mode, ifAvailable, steal, signal }: LockRequest): void {
  if (name.startsWith('-')) throw notSupported("The name of a lock cannot begin with '-'")
  if (steal && ifAvailable) throw notSupported("'steal' and 'ifAvailable' cannot be used together")
  if (steal && mode !== 'exclusive') throw notSupported("'steal' can only be used with mode 'exclusive'")
  if (signal && (steal || ifAvailable))
    throw notSupported("'signal' cannot be used together with 'steal' or 'ifAvailable'")
}

function toOptions(value: unknown): Omit<LockRequest, 'name' | 'callback'> {
  const isObject = typeof value === 'object' || typeof value === 'function'
  if (value !== undefined && !isObject) throw new TypeError("options must be an object: { mode: 'shared' }")
  // In the order in which Web IDL reads the members of a dictionary.
  const { ifAvailable, mode, signal, steal } = (value ?? {}) as Record<string, unknown>
  return {
    ifAvailable: Boolean(ifAvailable),
    mode: toMode(mode),
    signal: toSignal(signal),
    steal: Boolean(steal),
  }
}

function toMode(value: unknown): LockMode {
  const mode = value === undefined ? 'exclusive' : `${value}`
  if (mode === 'exclusive' || mode === 'shared') return mode
  throw new TypeError(`mode must be 'exclusive' or 'shared', not '${mode}'`)
}

function toSignal(value: unknown): AbortSignal | undefined {
  if (value === undefined || value instanceof AbortSignal) return value
  throw new TypeError('signal must be an AbortSignal')
}

function toCallback(value: unknown): LockGrantedCallback<unknown> {
  if (typeof value === 'function') return value as LockGrantedCallback<unknown>
  throw new TypeError('request() takes a function as its last argument: request(name, callback)')
}
