import { describe, expect, it } from 'vitest'
import { explain, explainReply, isReplica, isUnreadable } from '../../src/stores/redis/failures.js'

// What the server says where a command of a script fails, in the pcall of a script and outside.
const WITHIN = {
  'Redis 7': (text: string) => text,
  'Redis 6': (text: string) => `@user_script: 205: -${text}`,
}
const OUTSIDE = {
  'Redis 7': (text: string) => `${text} script: c00cc63bb85d8a91, on @user_script:4.`,
  'Redis 6': (text: string) =>
    `ERR Error running script (call to f_c00cc63bb85d8a91): @user_script:4: @user_script: 4: -${text}`,
}
const PASSING = {
  OOM: "OOM command not allowed when used memory > 'maxmemory'.",
  READONLY: "READONLY You can't write against a read only replica.",
  MISCONF: 'MISCONF Redis is configured to save RDB snapshots',
}

describe.each(['Redis 7', 'Redis 6'] as const)('the errors of a script of %s', (server) => {
  it.each(Object.entries(PASSING))('%s passes', (code, text) => {
    for (const failure of [
      explainReply(WITHIN[server](text)),
      explain(new Error(WITHIN[server](text))),
      explain(new Error(OUTSIDE[server](text))),
    ]) {
      expect(failure.retryable).toBe(true)
      expect(failure.message).toMatch(/^(Redis is out|This Redis server is a replica|Redis refuses writes)/)
      expect(isReplica(failure)).toBe(code === 'READONLY')
    }
    expect(isUnreadable(WITHIN[server](text))).toBe(false)
  })

  it('WRONGTYPE and an error of Lua do not pass', () => {
    const wrongType = 'WRONGTYPE Operation against a key holding the wrong kind of value'
    const lua = 'user_script:1: attempt to perform arithmetic on a nil value'
    const outside =
      server === 'Redis 6'
        ? `ERR Error running script (call to f_c00c): @user_script:1: ${lua}`
        : `ERR ${lua} script: c00c, on @user_script:1.`
    for (const failure of [explainReply(wrongType), explainReply(lua), explain(new Error(outside))])
      expect(failure.retryable).toBe(false)
    expect([wrongType, lua].map(isUnreadable)).toEqual([true, true])
  })

  it('an unknown command in a script does not pass, and is no silence of the server', () => {
    const text =
      server === 'Redis 6'
        ? '@user_script: 4: Unknown Redis command called from Lua script'
        : 'ERR Unknown Redis command called from script'
    expect(explainReply(text)).toMatchObject({
      retryable: false,
      message: expect.stringContaining('Unknown Redis command'),
    })
    expect(isUnreadable(text)).toBe(false)
  })
})

it('an error without a text is told by its name', () => {
  // As node-redis has it.
  class TimeoutError extends Error {}
  expect(explain(new TimeoutError()).message).toBe('Redis cannot be reached: TimeoutError')
  const refused = new Error('connect ECONNREFUSED 127.0.0.1:1')
  expect(explain(new AggregateError([refused, new TimeoutError()])).message).toBe(
    'Redis cannot be reached: connect ECONNREFUSED 127.0.0.1:1; TimeoutError',
  )
})
