import { describe, expect, it } from 'vitest'
import {
  CALL,
  CLAIM,
  FREE,
  formatLua,
  parseFields,
  QUEUE,
  readLua,
  textLua,
} from '../../src/stores/redis/lua/format.js'

describe('the Lua that is made from the fields of a Redis line', () => {
  it('reads what is named, up to the last of it', () => {
    expect(readLua(FREE, 'head', { last: 'newest', ttl: 'ends' })).toBe(
      "local newest, ends = string.match(head, '^(%d+) (%d+)$')",
    )
    expect(readLua(CLAIM, 'row', { next: 'second', fence: '=0', expires: 'ends' })).toBe(
      "local second, ends = string.match(row, '^(%S+) %S+ 0 (%d+) ')",
    )
  })

  it('reads where a field begins, before what the field holds', () => {
    expect(readLua(CALL, 'call', { mode: '~[qt]%l+', id: 'id', permits: 'share' }, { permits: 'from' })).toBe(
      "local id, from, share = string.match(call, '^[qt]%l+ (%S+) %d+ %d+ ()(%d+) ')",
    )
    expect(readLua(CLAIM, 'row', {}, { prev: 'from' })).toBe("local from = string.match(row, '^%S+ ()')")
  })

  it('wants a dash as it is, and not as a part of a pattern', () => {
    expect(readLua(QUEUE, 'head', { last: 'last', declared: '=-', pinned: '=-' })).toContain(' %- %-$')
  })

  it('writes texts with as few pieces as possible', () => {
    expect(textLua(CLAIM, { next: "'-'", prev: "'-'", fence: 'fence' }, 'rest')).toBe(
      "'- - ' .. fence .. ' ' .. rest",
    )
  })

  it('refuses to leave a field out', () => {
    expect(() => textLua(FREE, { last: 'last' })).toThrow('ttl is missing')
    expect(() => textLua(CLAIM, { next: 'next', fence: 'fence' }, 'rest')).toThrow('prev is missing')
  })

  it('writes numbers in full, and what a client tells of itself as it is', () => {
    const lua = formatLua(CLAIM, (field) => `row.${field}`)
    expect(lua).toMatch(/^string\.format\('%s %s %\.0f/)
    expect(lua).toMatch(/\.\. ' ' \.\. row\.info$/)
  })

  it('is read alike in TypeScript', () => {
    const text = '- - 5 60 50 1 2 0 0 1 channel {"label":"two words"}'
    expect(parseFields(CLAIM, text)).toMatchObject({
      next: '-',
      fence: '5',
      block: '1',
      info: '{"label":"two words"}',
    })
    expect(parseFields(QUEUE, text)).toBeNull()
    expect(parseFields(CLAIM, '- - 5')).toBeNull()
  })
})
