/**
 * A line, in Lua: what `contract/lines.ts` does for embedded stores, restated for the server and checked against the same model.
 * Every script that touches a line contains this. It expects `wall`, the server's time in microseconds, and `retentionMs`.
 *
 * A line is one hash. Field `#` is its head, in one of three forms; every other field is a claim under its id:
 *
 *     #     LAST TTL                                                     nobody holds or waits
 *     #     LAST TTL SEEN ID <claim>                                     one holds, nobody waits: its claim is here and has no field
 *     #     line LAST TTL SEEN OFFSET USED SOONEST CAPACITY HEAD FIRST TAIL DECLARED PINNED
 *     <id>  NEXT PREV FENCE EXPIRES SINCE PERMITS CAPACITY MAXHOLD FLOOR BLOCK CLIENT INFO
 *
 * What changes most is in front, so that the short ways of `turn.ts` can keep the rest as it is. Claims are linked by NEXT and PREV: the holds, then those that wait, of whom FIRST is the first. So a claim is found by its id, taken
 * out of the middle and put at the end in constant time, however long the line is, and all of it lives, expires and is evicted as one
 * key. `-` is nothing. Times are whole microseconds of the line's own clock: the server's wall clock plus OFFSET, which grows when the
 * server's clock is set back, so that this one never goes back and no deadline moves away.
 *
 * Nothing is written before the end (`close`): a call that fails has changed nothing.
 */
export const lineLua = `
local MOST_LAPSED = 5000
local PIN_US, PIN_SLACK_US = 2592000000000, 86400000000
local line, rows, fields, dirty, gone, news, now

local function parseRow(text)
  local next, prev, fence, expires, since, permits, capacity, maxHold, floor, block, client, info = string.match(text,
    '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
  return { fence = tonumber(fence), expires = tonumber(expires), since = tonumber(since), permits = tonumber(permits),
    capacity = tonumber(capacity), maxHold = tonumber(maxHold), floor = tonumber(floor), block = tonumber(block),
    prev = prev, next = next, client = client, info = info }
end

local function rowText(row)
  return string.format('%s %s %.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s ', row.next, row.prev, row.fence, row.expires, row.since,
    row.permits, row.capacity, row.maxHold, row.floor, row.block, row.client) .. row.info
end

local function parseHead(key, text)
  line = { key = key, last = 0, ttl = 0, seen = 0, offset = 0, used = 0, soonest = FAR, capacity = 0, need = 0,
    head = '-', first = '-', tail = '-' }
  if not text then return end
  local last, ttl = string.match(text, '^(%d+) (%d+)')
  if last then
    line.last, line.ttl = tonumber(last), tonumber(ttl)
    local seen, id, claim = string.match(text, '^%d+ %d+ (%d+) (%S+) (.*)$')
    if not seen then return end
    local row = parseRow(claim)
    rows[id] = row
    line.inline, line.head, line.tail = id, id, id
    line.seen, line.used, line.soonest, line.capacity = tonumber(seen), row.permits, row.expires, row.capacity
    return
  end
  local seen, offset, used, soonest, capacity, head, first, tail, declared, pinned
  last, ttl, seen, offset, used, soonest, capacity, head, first, tail, declared, pinned = string.match(text,
    '^line (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) (%S+) (%S+)$')
  line.last, line.ttl, line.seen, line.offset = tonumber(last), tonumber(ttl), tonumber(seen), tonumber(offset)
  line.used, line.soonest, line.capacity = tonumber(used), tonumber(soonest), tonumber(capacity)
  line.head, line.first, line.tail = head, first, tail
  line.declared, line.pinned = tonumber(declared), tonumber(pinned)
end

-- The id is read along with the head: most calls are about one claim.
local function open(key, id)
  rows, fields, dirty, gone, news = {}, {}, {}, {}, {}
  local found = redis.call('HMGET', key, '#', id)
  if found[2] then
    rows[id], fields[id] = parseRow(found[2]), true
  else
    rows[id] = false
  end
  parseHead(key, found[1])
  now = wall + line.offset
  if now < line.seen then
    line.offset = line.seen - wall
    now = line.seen
  end
end

local function get(id)
  local row = rows[id]
  if row == nil then
    local text = redis.call('HGET', line.key, id)
    row = text and parseRow(text) or false
    rows[id] = row
    if row then fields[id] = true end
  end
  return row
end

-- The key must outlive every claim, and the moment at which the clock has passed the counter. Set well ahead, so that it is rarely set.
local function keep()
  local slackUs = retentionMs * 1000
  local restUs = slackUs
  if line.pinned then restUs, slackUs = math.max(restUs, PIN_US), PIN_SLACK_US end
  local endsAt = math.max(line.need - line.offset, line.last, wall) + restUs
  if line.ttl >= endsAt then return false end
  line.ttl = endsAt + slackUs
  return true
end

local function headText()
  local counter = string.format('%.0f %.0f', line.last, line.ttl)
  if not line.pinned and line.head == '-' then return counter end
  local row = line.head == line.tail and rows[line.head]
  if not line.pinned and line.offset == 0 and row and row.fence > 0 then
    if fields[line.head] then gone[#gone + 1] = line.head end
    dirty[line.head] = nil
    return counter .. string.format(' %.0f %s ', now, line.head) .. rowText(row)
  end
  if line.inline and rows[line.inline] then dirty[line.inline] = true end
  return 'line ' .. counter .. string.format(' %.0f %.0f %.0f %.0f %.0f %s %s %s %s %s', now, line.offset, line.used, line.soonest,
    line.capacity, line.head, line.first, line.tail, line.declared or '-', line.pinned or '-')
end

local function write()
  if line.head ~= '-' and line.head == line.tail then get(line.head) end
  local isKeptLonger = keep()
  local written = { '#', headText() }
  for start = 1, #gone, 1000 do
    redis.call('HDEL', line.key, unpack(gone, start, math.min(start + 999, #gone)))
  end
  for id in pairs(dirty) do
    if #written >= 1000 then
      redis.call('HSET', line.key, unpack(written))
      written = {}
    end
    written[#written + 1] = id
    written[#written + 1] = rowText(rows[id])
  end
  if #written > 0 then redis.call('HSET', line.key, unpack(written)) end
  if isKeptLonger then redis.call('PEXPIRE', line.key, string.format('%.0f', math.ceil((line.ttl - wall) / 1000))) end
end

-- A refused try changes nothing, but the holders may have to be told of it.
local function close()
  if line.isChanged then write() end
  for _, each in ipairs(news) do redis.call('PUBLISH', each[1], each[2]) end
end

local function touch(id)
  dirty[id] = true
  line.isChanged = true
end

local function link(id, side, other)
  if id == '-' then return end
  get(id)[side] = other
  touch(id)
end

local function remove(id)
  local row = get(id)
  if line.head == id then line.head = row.next end
  if line.first == id then line.first = row.next end
  if line.tail == id then line.tail = row.prev end
  link(row.prev, 'next', row.next)
  link(row.next, 'prev', row.prev)
  if row.fence > 0 then
    line.used = line.used - row.permits
    if line.used == 0 then line.soonest = FAR end
  end
  if fields[id] then gone[#gone + 1] = id end
  rows[id], fields[id], dirty[id] = false, nil, nil
  line.isChanged = true
end

-- Puts a row into its links' place.
local function enter(id, row)
  if line.head == '-' then line.capacity = row.capacity end
  rows[id] = row
  touch(id)
  link(row.prev, 'next', id)
  link(row.next, 'prev', id)
  if row.prev == '-' then line.head = id end
  if row.next == '-' then line.tail = id end
  line.need = math.max(line.need, row.expires)
  if row.fence > 0 then
    line.used = line.used + row.permits
    line.soonest = math.min(line.soonest, row.expires)
  elseif line.first == '-' then
    line.first = id
  end
end

local function find(id)
  local row = get(id)
  if not row or row.expires > now then return row end
  remove(id)
  return false
end

local function nextFence(floor, block)
  local fence
  fence, line.last = fencesAfter(line.last, floor, block)
  line.isChanged = true
  return fence
end

local function latestEnd(row)
  return row.maxHold == 0 and FAR or row.since + row.maxHold
end

local function tellLost(id, row)
  news[#news + 1] = { row.client, 'lost ' .. id .. ' ' .. line.key }
end

-- Those who pass their hold on should stop soon.
local function tellWanted()
  local id = line.head
  while id ~= line.first do
    local row = get(id)
    if row.block > 1 then news[#news + 1] = { row.client, 'wanted ' .. id .. ' ' .. line.key } end
    id = row.next
  end
end

local function rob(id)
  tellLost(id, get(id))
  remove(id)
end

local function limit()
  return line.pinned or line.capacity
end

-- Of the holds; what 'soonest' remembers may be too early, since renewals do not look for it.
local function findSoonest()
  local soonest, id = FAR, line.head
  while id ~= line.first do
    local row = get(id)
    local next = row.next
    if row.expires <= now then remove(id) else soonest = math.min(soonest, row.expires) end
    id = next
  end
  if soonest ~= line.soonest then
    line.soonest = soonest
    line.isChanged = true
  end
end

local function promote(id, row)
  row.fence = nextFence(row.floor, row.block)
  row.since = now
  -- The deadline stays the waiter's own: only its next pulse proves that it is alive and starts the lease.
  row.expires = math.min(row.expires, latestEnd(row))
  line.first = row.next
  line.used = line.used + row.permits
  line.soonest = math.min(line.soonest, row.expires)
  touch(id)
  news[#news + 1] = { row.client, string.format('granted %.0f %s %s', row.fence, id, line.key) }
end

-- Drops the lapsed claims at the front, and promotes. Every call begins or ends with it. Thousands of dead ones are left to the next call.
local function settle()
  if line.used > 0 and line.soonest <= now then findSoonest() end
  local lapsed = 0
  while line.first ~= '-' do
    local id = line.first
    local row = get(id)
    if row.expires <= now then
      if lapsed >= MOST_LAPSED then
        line.isUntidy = true
        return
      end
      lapsed = lapsed + 1
      remove(id)
    elseif line.used + row.permits <= limit() then
      promote(id, row)
    else
      return
    end
  end
end

local function waitingText(id, row)
  local leftUs = row.expires - now
  -- Too many lapsed ones for one call: whoever asks should ask again at once.
  if line.isUntidy then return string.format('waiting %.0f 1 0 %.0f', leftUs, line.last) end
  if line.first ~= id then return string.format('waiting %.0f 0 - %.0f', leftUs, line.last) end
  if line.used == 0 then return string.format('waiting %.0f 1 - %.0f', leftUs, line.last) end
  findSoonest()
  return string.format('waiting %.0f 1 %.0f %.0f', leftUs, line.soonest - now, line.last)
end

local function claimText(id, row)
  if row.fence == 0 then return waitingText(id, row) end
  return string.format('granted %.0f %.0f %d', row.fence, row.expires - now, line.first == '-' and 0 or 1)
end
`
