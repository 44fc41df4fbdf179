import { CLAIM, readLua } from './format.js'
import { lineStorageLua } from './line-storage.js'
import { admissionLua, messageLua } from './script.js'

/**
 * Thousands of claims that lapsed at once are left to the next call: a script must not hold up the
 * server.
 */
const MOST_LAPSED = 5000

/**
 * A line, in Lua: what `Lines` does for embedded stores, restated for the server and checked
 * against the same model. Every script that changes a line contains this. `format.ts` says how the
 * line is stored.
 *
 * Claims are linked. So a claim is found by its id, taken out of the middle and put at the end in
 * constant time, however long the line is, and all of it lives, expires and is evicted as one key.
 */
export const lineLua = `
${admissionLua}
${lineStorageLua}
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
    if line.used == 0 then line.soonest = NEVER end
  end
  if fields[id] then removed[#removed + 1] = id end
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
  line.needed = math.max(line.needed, row.expires)
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
  return row.maxHold == 0 and NEVER or row.since + row.maxHold
end

local function notifyLost(id, row)
  messages[#messages + 1] = { row.client, ${messageLua.lost('id', 'line.key')} }
end

-- Holders with a block of fences pass their hold on inside their process: they should stop soon.
local function notifyWanted()
  local id = line.head
  while id ~= line.first do
    local row = get(id)
    if row.block > 1 then messages[#messages + 1] = { row.client, ${messageLua.wanted('id', 'line.key')} } end
    id = row.next
  end
end

local function revoke(id)
  notifyLost(id, get(id))
  remove(id)
end

local function limit()
  return line.pinned or line.capacity
end

-- When the first hold ends. What 'soonest' remembers may be too early, since renewals do not change
-- it.
local function findSoonest()
  local soonest, id = NEVER, line.head
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
  -- The deadline stays the waiter's own: only its next pulse proves that it is alive and starts the
  -- lease.
  row.expires = math.min(row.expires, latestEnd(row))
  line.first = row.next
  line.used = line.used + row.permits
  line.soonest = math.min(line.soonest, row.expires)
  touch(id)
  messages[#messages + 1] = { row.client, ${messageLua.granted("string.format('%.0f', row.fence)", 'id', 'line.key')} }
end

-- Drops the lapsed claims at the front, and promotes. Every call begins or ends with it.
local function advance()
  if line.used > 0 and line.soonest <= now then findSoonest() end
  local lapsed = 0
  while line.first ~= '-' do
    local id = line.first
    local row = get(id)
    if row.expires <= now then
      if lapsed >= ${MOST_LAPSED} then
        line.hasLapsedLeft = true
        return
      end
      lapsed = lapsed + 1
      remove(id)
    elseif fits(line.used, row.permits, limit()) then
      promote(id, row)
    else
      return
    end
  end
end

-- Counts the waiters of a line as it is stored: one command, however many they are.
local function countStored()
  local count = 0
  for _, text in ipairs(redis.call('HVALS', line.key)) do
    ${readLua(CLAIM, 'text', { fence: '=0', expires: 'ends' })}
    if ends and tonumber(ends) > now then count = count + 1 end
  end
  return count
end

-- Whether so many claims wait, those that have lapsed not counted.
local function hasWaiters(most)
  if line.first == '-' then return false end
  -- All fields but the head and a hold.
  local size = redis.call('HLEN', line.key) - 2
  if size < most then return false end
  if size < 2 * most and not line.isChanged then return countStored() >= most end
  local count, id = 0, line.first
  while id ~= '-' and count < most do
    local row = get(id)
    if row.expires > now then count = count + 1 end
    id = row.next
  end
  return count >= most
end

local function waitingText(id, row)
  local leftUs = row.expires - now
  -- Too many lapsed claims for one call: the client should ask again at once.
  if line.hasLapsedLeft then return string.format('waiting %.0f 1 0 %.0f', leftUs, line.last) end
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
