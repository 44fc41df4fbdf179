import type {
  Answer,
  Beat,
  BeatReply,
  ClaimReply,
  ClaimRequest,
  ClaimView,
  Connection,
  InspectQuery,
  LineView,
  StateChange,
  StateOutcome,
  StateValue,
  StateView,
} from '../../contract/store.js'

/** A connection whose calls all take one way to another connection. */
export abstract class ForwardingConnection implements Connection {
  /** Does the work on the other connection, and gives its answer. */
  protected abstract forward<T>(work: (inner: Connection) => Answer<T>): Promise<T>

  abstract close(): Promise<void>

  claim(request: ClaimRequest): Promise<ClaimReply> {
    return this.forward((inner) => inner.claim(request))
  }

  pulse(beats: readonly Beat[]): Promise<BeatReply[]> {
    return this.forward((inner) => inner.pulse(beats))
  }

  release(resource: string, id: string): Promise<boolean> {
    return this.forward((inner) => inner.release(resource, id))
  }

  evict(resource: string, fence: number | null): Promise<ClaimView[]> {
    return this.forward((inner) => inner.evict(resource, fence))
  }

  cancel(resource: string, id: string): Promise<ClaimView[]> {
    return this.forward((inner) => inner.cancel(resource, id))
  }

  resize(resource: string, declared: number, capacity: number): Promise<void> {
    return this.forward((inner) => inner.resize(resource, declared, capacity))
  }

  read(key: string, watch: boolean): Promise<StateValue | null> {
    return this.forward((inner) => inner.read(key, watch))
  }

  write(change: StateChange): Promise<StateOutcome> {
    return this.forward((inner) => inner.write(change))
  }

  async *states(prefix: string): AsyncIterable<StateView> {
    yield* await this.forward((inner) => all(inner.states(prefix)))
  }

  async *inspect(query: InspectQuery): AsyncIterable<LineView> {
    yield* await this.forward((inner) => all(inner.inspect(query)))
  }
}

/** As one answer: what has come at all has come whole. */
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const item of items) found.push(item)
  return found
}
