import { nothing } from '../../base/nothing.js'

/** What a promise tells to. */
type Tell<T> = (value: T) => void

/**
 * What Bluebird's `using` takes. Bluebird recognises it by its methods, as it does with that of
 * another copy of Bluebird, so Holdfast does not need the package.
 */
export class Disposer<T> {
  readonly #promise: DisposablePromise<T>
  readonly #release: (value: T) => Promise<void>
  #acquired: { readonly value: T } | null = null

  /** Made by `disposer`. */
  constructor(promise: Promise<T>, release: (value: T) => Promise<void>) {
    promise.then((value) => {
      this.#acquired = { value }
    }, nothing)
    this.#promise = new DisposablePromise(promise)
    this.#release = release
  }

  /** The promise of the lock, as Bluebird needs it. */
  promise(): object {
    return this.#promise
  }

  /** The lock, if it was acquired. */
  resource(): T | null {
    return this.#acquired?.value ?? null
  }

  /** Releases the lock, if it was acquired. */
  tryDispose(): Promise<void> | null {
    const acquired = this.#acquired
    this.#acquired = null
    this.#promise._unsetDisposable()
    return acquired && this.#release(acquired.value)
  }
}

/** The methods by which `using` finds the disposer of a promise again. */
class DisposablePromise<T> {
  readonly #promise: Promise<T>
  #disposer: Disposer<T> | null = null
  #isAsked = false

  constructor(promise: Promise<T>) {
    this.#promise = promise
  }

  /**
   * `using` asks twice. The second time it only wants the disposer: a rejection that it does not
   * handle would be reported.
   */
  // biome-ignore lint/suspicious/noThenProperty: Bluebird takes it for a promise by this
  then(resolve: Tell<T>, reject: Tell<unknown>): void {
    this.#promise.then(resolve, this.#isAsked ? nothing : reject)
    this.#isAsked = true
  }

  _setDisposable(disposer: Disposer<T>): void {
    this.#disposer = disposer
  }

  _unsetDisposable(): void {
    this.#disposer = null
  }

  _isDisposable(): boolean {
    return this.#disposer !== null
  }

  _getDisposer(): Disposer<T> | null {
    return this.#disposer
  }
}
