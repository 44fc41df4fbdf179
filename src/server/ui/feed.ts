import { addressOf } from './api.js'
import { backoffMs } from './backoff.js'
import { chance, later, nowMs } from './machine.js'

export type Connection = { isOpen: boolean; attempt: number; retryAtMs: number | null }

type Listener = (data: never) => void

const EVENTS = ['resources', 'resource', 'trouble', 'fine'] as const
type EventName = (typeof EVENTS)[number]

/** The server's events, over one stream that is opened again whenever it breaks. */
export class Feed {
  readonly #listeners = new Map<EventName, Set<Listener>>()
  readonly #changed: (connection: Connection) => void
  #source: EventSource | null = null
  #cancel: () => void = () => {}
  #address = ''
  #attempt = 0

  constructor(changed: (connection: Connection) => void) {
    this.#changed = changed
  }

  /** Returns what ends it. */
  on<T>(name: EventName, listener: (data: T) => void): () => void {
    const all = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, all)
    all.add(listener as Listener)
    return () => all.delete(listener as Listener)
  }

  /** Leaves the present stream for this one. */
  open(parameters: Record<string, string>): void {
    this.close()
    this.#attempt = 0
    this.#address = addressOf('api/events', parameters)
    this.#connect()
  }

  close(): void {
    this.#cancel()
    this.#source?.close()
    this.#source = null
  }

  /** Does not wait for the next attempt. */
  retry(): void {
    this.close()
    this.#connect()
  }

  #connect(): void {
    const source = new EventSource(this.#address)
    this.#source = source
    source.onopen = () => {
      this.#attempt = 0
      this.#changed({ isOpen: true, attempt: 0, retryAtMs: null })
    }
    source.onerror = () => this.#again(source)
    for (const name of EVENTS)
      source.addEventListener(name, (event) => {
        const data = event.data ? JSON.parse(event.data) : {}
        for (const listener of this.#listeners.get(name) ?? []) listener(data as never)
      })
  }

  /** The browser's own attempts do not slow down, and end at an answer such as 503. */
  #again(source: EventSource): void {
    if (source !== this.#source) return
    this.close()
    const waitMs = backoffMs(this.#attempt++, chance())
    this.#cancel = later(() => this.#connect(), waitMs)
    this.#changed({ isOpen: false, attempt: this.#attempt, retryAtMs: nowMs() + waitMs })
  }
}
