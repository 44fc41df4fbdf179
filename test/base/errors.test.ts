import { describe, expect, it } from 'vitest'
import { HoldfastError, invalid, isRetryable } from '../../src/base/errors.js'

describe('HoldfastError', () => {
  it('carries its code, resource, store and cause', () => {
    const cause = new Error('socket closed')
    const error = new HoldfastError('STORE_UNAVAILABLE', 'No answer', {
      resource: 'r',
      store: 'sqlite',
      cause,
      retryable: true,
    })
    expect(error).toBeInstanceOf(Error)
    expect(error).toMatchObject({ name: 'HoldfastError', code: 'STORE_UNAVAILABLE', message: 'No answer' })
    expect(error).toMatchObject({ resource: 'r', store: 'sqlite', cause, retryable: true })
  })

  it('is final and without a cause unless told otherwise', () => {
    const error = new HoldfastError('CLOSED', 'Closed')
    expect(error.retryable).toBe(false)
    expect('cause' in error).toBe(false)
  })

  it('keeps a cause that is undefined apart from none: an abort reason may be anything', () => {
    expect('cause' in new HoldfastError('ABORTED', 'Aborted', { cause: undefined })).toBe(true)
  })
})

describe('isRetryable', () => {
  it('believes only errors of Holdfast', () => {
    expect(isRetryable(new HoldfastError('STORE_UNAVAILABLE', '', { retryable: true }))).toBe(true)
    expect(isRetryable(new HoldfastError('STORE_UNAVAILABLE', ''))).toBe(false)
    expect(isRetryable(Object.assign(new Error(), { retryable: true }))).toBe(false)
    expect(isRetryable(undefined)).toBe(false)
  })
})

describe('invalid', () => {
  it('is an INVALID_ARGUMENT', () => {
    expect(invalid('bad', 'r')).toMatchObject({ code: 'INVALID_ARGUMENT', message: 'bad', resource: 'r' })
    expect(invalid('bad').resource).toBeUndefined()
  })
})
