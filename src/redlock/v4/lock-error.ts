/** A lock could not be acquired, extended or released. `cause` explains it. */
export class LockError extends Error {
  /** How many attempts were made: here one, or 0 if no server was asked. */
  readonly attempts: number | undefined

  constructor(message?: string, attempts?: number, options?: { readonly cause?: unknown }) {
    super(message || 'Failed to lock the resource.', options)
    this.name = 'LockError'
    this.attempts = attempts
  }
}
