import { EXCLUSIVE, MOST_HEIRS } from '../../../contract/constants.js'
import {
  CLAIM,
  COUNTER_END,
  EXPIRES_END,
  EXPIRES_START,
  FREE,
  ID_START,
  NO_LINKS,
  QUEUE,
  readLua,
  SINGLE,
  textLua,
} from './format.js'
import { messageLua } from './script.js'

/**
 * The usual cases, in Lua. They read and write what they must, and copy the rest as text. They are
 * blocks and not functions: to create a function costs a script time in every call. Each is left by
 * `break`, having done nothing, if its case is not the one at hand; otherwise it sets `reply`, and
 * `head` to what it has written there. They use
 *
 *     key, head, wallText   the line, its field #, the time as text
 *     id, client            of a release
 *     call, mode, id, lease, presence, permits, capacity, floor, block   of a claim, as text; what a claim keeps of it begins at `from`
 *     last, ttl             of a free line, as text
 *
 * Texts are copied from a place on, because a pattern that runs to the end of a text looks at every
 * character of it.
 */

/**
 * A claim on a free line. The bare fence in reply says: granted for the whole lease, and nobody
 * waits.
 */
export const takeFreeLua = block(`
  local fence, newest = fencesAfter(last, floor, block)
  local expires = wall + lease
  local endsAt = math.max(expires, newest) + retentionUs
  local isProlonged = tonumber(ttl) < endsAt
  if isProlonged then ttl = string.format('%.0f', endsAt + retentionUs) end
  local fenceText, expiresText = fence == wall and wallText or string.format('%.0f', fence), string.format('%.0f', expires)
  local lastText = newest == fence and fenceText or string.format('%.0f', newest)
  head = ${textLua(
    SINGLE,
    {
      ...{ last: 'lastText', ttl: 'ttl', seen: 'wallText', id: 'id', next: "'-'", prev: "'-'" },
      ...{ fence: 'fenceText', expires: 'expiresText', since: 'wallText' },
    },
    'string.sub(call, from)',
  )}
  redis.call('HSET', key, '#', head)
  if isProlonged then redis.call('PEXPIRE', key, string.format('%.0f', math.ceil((endsAt + retentionUs - wall) / 1000))) end
  reply = fenceText
`)

/**
 * The release of the only claim in a line. A number at the wrong place is nil or too small, which
 * ends this path.
 */
export const releaseSingleLua = block(`
  local after = ${ID_START} + #id
  if string.sub(head, ${ID_START}, after + ${NO_LINKS.length - 1}) ~= id .. '${NO_LINKS}' then break end
  local expires = tonumber(string.sub(head, after + ${EXPIRES_START}, after + ${EXPIRES_END}))
  if not expires or expires <= wall then break end
  head, reply = string.sub(head, 1, ${COUNTER_END}), '1'
  redis.call('HSET', key, '#', head)
`)

/** A line that was not resized, and whose clock is the server's. */
const PLAIN_QUEUE = { last: 'last', ttl: 'ttl', seen: 'seen', offset: '=0', declared: '=-', pinned: '=-' }
const readQueue = readLua(QUEUE, 'head', {
  ...PLAIN_QUEUE,
  ...{ used: 'used', soonest: 'soonest', capacity: 'most', head: 'holder', first: 'first', tail: 'tail' },
})

/** The head of such a line after a change; the names are Lua expressions. */
function queueText(changes: {
  last?: string
  used: string
  soonest: string
  holder: string
  first: string
  tail: string
}): string {
  const { last = 'last', used, soonest, holder, first, tail } = changes
  return textLua(QUEUE, {
    ...{ last, ttl: 'ttl', seen: 'wallText', offset: "'0'", used, soonest, capacity: 'most' },
    ...{ head: holder, first, tail, declared: "'-'", pinned: "'-'" },
  })
}

/**
 * A release by the only holder, while the first waiter comes right behind it and wants the whole
 * capacity: that one holds now. The claims of the same client right behind it are named as its
 * heirs, and the fences that follow are reserved for them.
 */
export const handOverLua = block(`
  ${readQueue}
  if holder ~= id or first == '-' or tonumber(seen) > wall then break end
  local next = redis.call('HGET', key, first)
  ${readLua(
    CLAIM,
    'next',
    {
      ...{ next: 'second', prev: 'ahead', fence: '=0', expires: 'expires', permits: 'share', maxHold: '=0' },
      ...{ floor: 'above', block: 'count', client: 'receiver' },
    },
    { permits: 'from', info: 'infoFrom' },
  )}
  if ahead ~= id or share ~= most or tonumber(expires) <= wall then break end
  -- The head may be behind: renewals do not change it.
  if tonumber(soonest) <= wall then
    ${readLua(CLAIM, "redis.call('HGET', key, id)", { expires: 'ends' })}
    if tonumber(ends) <= wall then break end
  end
  local heirs, fences, behind, info = '', tonumber(count), '-', nil
  if count == '1' and share == '${EXCLUSIVE}' and second ~= '-' then
    behind, info = second, string.sub(next, infoFrom)
  end
  while behind ~= '-' and fences <= ${MOST_HEIRS} do
    local row = redis.call('HGET', key, behind)
    ${readLua(
      CLAIM,
      'row',
      {
        ...{ next: 'after', fence: '=0', expires: 'ends', permits: 'wants', maxHold: '=0', floor: 'over' },
        ...{ block: 'size', client: 'whose' },
      },
      { info: 'at' },
    )}
    if whose ~= receiver or wants ~= share or size ~= '1' or string.sub(row, at) ~= info then break end
    if tonumber(ends) <= wall or tonumber(over) > tonumber(last) then break end
    heirs = heirs .. '/' .. behind
    fences, behind = fences + 1, after
  end
  local fence, newest = fencesAfter(last, above, fences)
  if tonumber(ttl) < math.max(newest, wall) + retentionUs then break end
  local fenceText = fence == wall and wallText or string.format('%.0f', fence)
  local lastText = newest == fence and fenceText or string.format('%.0f', newest)
  if second == '-' then
    head = ${textLua(
      SINGLE,
      {
        ...{ last: 'lastText', ttl: 'ttl', seen: 'wallText', id: 'first', next: "'-'", prev: "'-'" },
        ...{ fence: 'fenceText', expires: 'expires', since: 'wallText' },
      },
      'string.sub(next, from)',
    )}
    redis.call('HSET', key, '#', head)
    redis.call('HDEL', key, id, first)
  else
    head = ${queueText({ last: 'lastText', used: 'share', soonest: 'expires', holder: 'first', first: 'second', tail: 'tail' })}
    redis.call('HSET', key, '#', head, first, ${textLua(
      CLAIM,
      { next: 'second', prev: "'-'", fence: 'fenceText', expires: 'expires', since: 'wallText' },
      'string.sub(next, from)',
    )})
    redis.call('HDEL', key, id)
  end
  if receiver == client then
    reply = '1 ' .. fenceText .. ' ' .. first .. heirs
  else
    redis.call('PUBLISH', receiver, ${messageLua.granted('fenceText', 'first .. heirs', 'key')})
    reply = '1'
  end
`)

/** The first waiter gives up its place, while everything is held and others wait behind it. */
export const leaveFirstLua = block(`
  ${readQueue}
  if first ~= id or used ~= most or tonumber(soonest) <= wall or tonumber(seen) > wall then break end
  ${readLua(CLAIM, "redis.call('HGET', key, id)", { next: 'second', prev: 'ahead', fence: '=0', expires: 'expires' })}
  if second == '-' or tonumber(expires) <= wall then break end
  local found = redis.call('HMGET', key, ahead, second)
  ${readLua(CLAIM, 'found[1]', {}, { prev: 'beforeFrom' })}
  ${readLua(CLAIM, 'found[2]', { next: 'after' }, { fence: 'behindFrom' })}
  head = ${queueText({ used: 'used', soonest: 'soonest', holder: 'holder', first: 'second', tail: 'tail' })}
  redis.call('HSET', key, '#', head, ahead, ${textLua(CLAIM, { next: 'second' }, 'string.sub(found[1], beforeFrom)')},
    second, ${textLua(CLAIM, { next: 'after', prev: 'ahead' }, 'string.sub(found[2], behindFrom)')})
  redis.call('HDEL', key, id)
  reply = '1'
`)

/** The row of a claim that begins to wait, if the key lives long enough for it. */
function waitingRow(ahead: string): string {
  const values = { next: "'-'", prev: ahead, fence: "'0'", expires: 'endsText', since: 'wallText' }
  return `
  local endsAt = wall + presence
  if tonumber(ttl) < math.max(endsAt, tonumber(last)) + retentionUs then break end
  local endsText = string.format('%.0f', endsAt)
  local row = ${textLua(CLAIM, values, 'string.sub(call, from)')}
`
}

/**
 * A claim that is refused or waits behind a single holder. A holder with a block of fences is told
 * that its hold is wanted.
 */
export const waitFirstLua = block(`
  ${readLua(
    SINGLE,
    'head',
    {
      ...{ last: 'last', ttl: 'ttl', seen: 'seen', id: 'holder', prev: '=-', expires: 'expires' },
      ...{ permits: 'held', capacity: 'most', block: 'reserved', client: 'receiver' },
    },
    { prev: 'holdFrom' },
  )}
  if not last or holder == id or most ~= capacity or fits(held, permits, most) then break end
  if tonumber(expires) <= wall or tonumber(seen) > wall then break end
  local hold = string.sub(head, holdFrom)
  if mode ~= 'try' then
    ${waitingRow('holder')}
    head = ${queueText({ used: 'held', soonest: 'expires', holder: 'holder', first: 'id', tail: 'id' })}
    redis.call('HSET', key, '#', head, holder, ${textLua(CLAIM, { next: 'id' }, 'hold')}, id, row)
  end
  if reserved ~= '1' then redis.call('PUBLISH', receiver, ${messageLua.wanted('holder', 'key')}) end
  reply = mode == 'try' and 'busy' or 'waiting ' .. presence .. string.format(' 1 %.0f ', expires - wall) .. last
`)

/** A claim that is refused or waits behind other waiters. */
export const waitLastLua = block(`
  ${readQueue}
  if not last or first == '-' or most ~= capacity or tonumber(soonest) <= wall or tonumber(seen) > wall then break end
  local found = redis.call('HMGET', key, id, first, tail)
  if found[1] then break end
  ${readLua(CLAIM, 'found[2]', { fence: '=0', expires: 'ends' })}
  if tonumber(ends) <= wall then break end
  if mode == 'try' then
    reply = 'busy'
    break
  end
  ${waitingRow('tail')}
  ${readLua(CLAIM, 'found[3]', {}, { prev: 'tailFrom' })}
  head = ${queueText({ used: 'used', soonest: 'soonest', holder: 'holder', first: 'first', tail: 'id' })}
  redis.call('HSET', key, '#', head, tail, ${textLua(CLAIM, { next: 'id' }, 'string.sub(found[3], tailFrom)')}, id, row)
  reply = 'waiting ' .. presence .. ' 0 - ' .. last
`)

/** Reads the head of a line that is free, or does not exist. */
export const readFreeLua = readLua(FREE, "head or '0 0'", { last: 'last', ttl: 'ttl' })

/** Lua that `break` can leave. */
function block(body: string): string {
  return `repeat ${body} until true`
}
