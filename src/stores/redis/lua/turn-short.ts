import { EXCLUSIVE, MOST_HEIRS } from '../../../contract/constants.js'

/**
 * The short ways, in Lua: the usual cases, which read and write what they must and copy the rest as text. They are blocks of one function and not
 * functions: to make a function costs a script about as much as a call of the server does. Each is left by `break`, having done nothing, if
 * it is another case; else it sets `reply`, and `head` to what it has written there. They expect, besides:
 *
 *     key, head    the line, and its field #
 *     id, client   of a release
 *     call, mode, id, lease, presence, permits, capacity, maxHold, floor, block   of a claim, as text; what it keeps of that begins at `from`
 *
 * The rest of a text is taken by its place: a pattern that runs to the end of a text looks at every sign of it.
 */

/** The only claim of its line is given back. */
export const giveBackLua = block(`
  local counter, holder, expires = match(head, '^(%d+ %d+) %d+ (%S+) %- %- %d+ (%d+) ')
  if holder ~= id or tonumber(expires) <= wall then break end
  redisCall('HSET', key, '#', counter)
  head, reply = counter, '1'
`)

const LINE = "'^line (%d+) (%d+) (%d+) 0 (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) %- %-$'"

/** The only hold, since the first who waits comes right behind it, goes to that one, who wants all of it. */
export const handOverLua = block(`
  local last, ttl, seen, _, soonest, most, holder, first, tail = match(head, ${LINE})
  if holder ~= id or first == '-' or tonumber(seen) > wall then break end
  local next = redisCall('HGET', key, first)
  local second, ahead, expires, from, share, above, count, receiver, words = match(next,
    '^(%S+) (%S+) 0 (%d+) %d+ ()(%d+) %d+ 0 (%d+) (%d+) (%S+) ()')
  if ahead ~= id or share ~= most or tonumber(expires) <= wall then break end
  -- The head may be behind: renewals do not change it.
  if tonumber(soonest) <= wall and tonumber(match(redisCall('HGET', key, id), '^%S+ %S+ %d+ (%d+)')) <= wall then break end
  local heirs, fences, behind = '', tonumber(count), '-'
  if count == '1' and share == '${EXCLUSIVE}' and second ~= '-' then
    behind, words = second, sub(next, words)
  end
  while behind ~= '-' and fences <= ${MOST_HEIRS} do
    local row = redisCall('HGET', key, behind)
    local after, ends, wants, over, size, whose, said = match(row, '^(%S+) %S+ 0 (%d+) %d+ (%d+) %d+ 0 (%d+) (%d+) (%S+) ()')
    -- What differs in its words is not passed on, and would be read and kept in mind for nothing.
    if whose ~= receiver or wants ~= share or size ~= '1' or sub(row, said) ~= words then break end
    if tonumber(ends) <= wall or tonumber(over) > tonumber(last) then break end
    heirs = heirs .. '/' .. behind
    fences, behind = fences + 1, after
  end
  local fence, newest = fencesAfter(tonumber(last), tonumber(above), fences)
  if tonumber(ttl) < math.max(newest, wall) + retentionUs then break end
  local fenceText = fence == wall and wallText or format('%.0f', fence)
  local lastText = newest == fence and fenceText or format('%.0f', newest)
  local row = ' - ' .. fenceText .. ' ' .. expires .. ' ' .. wallText .. ' ' .. sub(next, from)
  if second == '-' then
    head = lastText .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. first .. ' -' .. row
    redisCall('HSET', key, '#', head)
    redisCall('HDEL', key, id, first)
  else
    head = 'line ' .. lastText .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. share .. ' ' .. expires .. ' ' .. most
      .. ' ' .. first .. ' ' .. second .. ' ' .. tail .. ' - -'
    redisCall('HSET', key, '#', head, first, second .. row)
    redisCall('HDEL', key, id)
  end
  if receiver == client then
    reply = '1 ' .. fenceText .. ' ' .. first .. heirs
  else
    redisCall('PUBLISH', receiver, 'granted ' .. fenceText .. ' ' .. first .. heirs .. ' ' .. key)
    reply = '1'
  end
`)

/** The first of those who wait leaves its place, while all is held and others wait behind it. */
export const giveUpFirstLua = block(`
  local last, ttl, seen, used, soonest, most, holder, first, tail = match(head, ${LINE})
  if first ~= id or used ~= most or tonumber(soonest) <= wall or tonumber(seen) > wall then break end
  local second, ahead, expires = match(redisCall('HGET', key, id), '^(%S+) (%S+) 0 (%d+) ')
  if second == '-' or tonumber(expires) <= wall then break end
  local found = redisCall('HMGET', key, ahead, second)
  local before, behind = found[1], found[2]
  local after, from = match(behind, '^(%S+) %S+()')
  head = 'line ' .. last .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. used .. ' ' .. soonest .. ' ' .. most .. ' '
    .. holder .. ' ' .. second .. ' ' .. tail .. ' - -'
  redisCall('HSET', key, '#', head, ahead, second .. sub(before, #id + 1), second, after .. ' ' .. ahead .. sub(behind, from))
  redisCall('HDEL', key, id)
  reply = '1'
`)

/** Nobody is in the line; \`last\` and \`ttl\` are all that its head says. */
export const takeFreeLua = block(`
  if maxHold ~= '0' then break end
  local fence, newest = fencesAfter(tonumber(last), tonumber(floor), tonumber(block))
  local expires = wall + tonumber(lease)
  local endsAt = math.max(expires, newest) + retentionUs
  local isKeptLonger = tonumber(ttl) < endsAt
  if isKeptLonger then ttl = format('%.0f', endsAt + retentionUs) end
  local fenceText = fence == wall and wallText or format('%.0f', fence)
  local lastText = newest == fence and fenceText or format('%.0f', newest)
  head = lastText .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. id .. ' - - ' .. fenceText .. ' '
    .. format('%.0f', expires) .. ' ' .. wallText .. ' ' .. sub(call, from)
  redisCall('HSET', key, '#', head)
  if isKeptLonger then redisCall('PEXPIRE', key, format('%.0f', math.ceil((endsAt + retentionUs - wall) / 1000))) end
  reply = 'granted ' .. fenceText .. ' ' .. lease .. ' 0'
`)

/** The row of a claim that begins to wait, if the key lives long enough for it. */
const WAITING_ROW = `
  local endsAt = wall + tonumber(presence)
  if tonumber(ttl) < math.max(endsAt, tonumber(last)) + retentionUs then break end
  local row = format(' 0 %.0f ', endsAt) .. wallText .. ' ' .. sub(call, from)
`

/** One holds, and nobody waits yet. */
export const waitFirstLua = block(`
  local last, ttl, seen, holder, hold, expires, held, most, reserved, receiver = match(head,
    '^(%d+) (%d+) (%d+) (%S+) %- ()%- %d+ (%d+) %d+ (%d+) (%d+) %d+ %d+ (%d+) (%S+) ')
  if not last or holder == id or most ~= capacity or tonumber(held) + tonumber(permits) <= tonumber(most) then break end
  if tonumber(expires) <= wall or tonumber(seen) > wall then break end
  local isPassedOn = reserved ~= '1'
  if mode == 'try' then
    if isPassedOn then redisCall('PUBLISH', receiver, 'wanted ' .. holder .. ' ' .. key) end
    reply = 'busy'
    break
  end
  ${WAITING_ROW}
  hold = sub(head, hold)
  head = 'line ' .. last .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. held .. ' ' .. expires .. ' ' .. most .. ' '
    .. holder .. ' ' .. id .. ' ' .. id .. ' - -'
  redisCall('HSET', key, '#', head, holder, id .. ' ' .. hold, id, '- ' .. holder .. row)
  if isPassedOn then redisCall('PUBLISH', receiver, 'wanted ' .. holder .. ' ' .. key) end
  reply = 'waiting ' .. presence .. format(' 1 %.0f ', tonumber(expires) - wall) .. last
`)

/** Others wait already; behind the last of them there is nobody, which is one sign. */
export const waitLastLua = block(`
  local last, ttl, seen, used, soonest, most, holder, first, tail = match(head, ${LINE})
  if not last or first == '-' or most ~= capacity or tonumber(soonest) <= wall or tonumber(seen) > wall then break end
  local found = redisCall('HMGET', key, id, first, tail)
  if found[1] or tonumber(match(found[2], '^%S+ %S+ 0 (%d+)')) <= wall then break end
  if mode == 'try' then
    reply = 'busy'
    break
  end
  ${WAITING_ROW}
  head = 'line ' .. last .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. used .. ' ' .. soonest .. ' ' .. most .. ' '
    .. holder .. ' ' .. first .. ' ' .. id .. ' - -'
  redisCall('HSET', key, '#', head, tail, id .. sub(found[3], 2), id, '- ' .. tail .. row)
  reply = 'waiting ' .. presence .. ' 0 - ' .. last
`)

/** What can be left in the middle. */
function block(body: string): string {
  return `repeat ${body} until true`
}
