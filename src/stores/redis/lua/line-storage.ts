import { HIGHEST_FENCE } from '../../../contract/constants.js'
import { CLAIM, FREE, formatLua, QUEUE, readAllLua, readLua, SINGLE, tableLua } from './format.js'

/**
 * A pinned capacity outlives its last claim by a month. The key's life is prolonged by a day at a
 * time.
 */
const PIN_US = 30 * 24 * 3600 * 1_000_000
const PIN_SLACK_US = 24 * 3600 * 1_000_000
/** HSET and HDEL take no more arguments at once, since Lua's stack is limited. */
const MOST_ARGUMENTS = 1000

/**
 * Reads and writes a line, in Lua: `open`, `get`, `touch`, `close`. Nothing is written before
 * `close`, so a call that fails has changed nothing.
 */
export const lineStorageLua = `
local NEVER = ${HIGHEST_FENCE}
local line, rows, fields, dirty, removed, messages, now

local function parseRow(text)
  ${readAllLua(CLAIM, 'text')}
  return ${tableLua(CLAIM)}
end

local function rowText(row)
  return ${formatLua(CLAIM, (field) => `row.${field}`)}
end

local function parseHead(key, text)
  line = { key = key, last = 0, ttl = 0, seen = 0, offset = 0, used = 0, soonest = NEVER, capacity = 0, needed = 0,
    head = '-', first = '-', tail = '-' }
  if not text then return end
  ${readAllLua(QUEUE, 'text')}
  if last then
    for name, value in pairs(${tableLua(QUEUE)}) do line[name] = value end
    line.declared, line.pinned = tonumber(declared), tonumber(pinned)
    return
  end
  local last, ttl = string.match(text, '^(%d+) (%d+)')
  line.last, line.ttl = tonumber(last), tonumber(ttl)
  ${readLua(SINGLE, 'text', { seen: 'seen', id: 'id' }, { next: 'from' })}
  if not seen then return end
  local row = parseRow(string.sub(text, from))
  rows[id] = row
  line.inline, line.head, line.tail = id, id, id
  line.seen, line.used, line.soonest, line.capacity = tonumber(seen), row.permits, row.expires, row.capacity
end

-- The id is read along with the head: most calls are about one claim.
local function open(key, id)
  rows, fields, dirty, removed, messages = {}, {}, {}, {}, {}
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

local function touch(id)
  dirty[id] = true
  line.isChanged = true
end

-- The key must outlive every claim, and the time at which the clock passes the counter. Set well
-- ahead, so that it is rarely set.
local function prolongKey()
  local restUs, slackUs = retentionUs, retentionUs
  if line.pinned then restUs, slackUs = math.max(restUs, ${PIN_US}), ${PIN_SLACK_US} end
  local endsAt = math.max(line.needed - line.offset, line.last, wall) + restUs
  if line.ttl >= endsAt then return false end
  line.ttl = endsAt + slackUs
  return true
end

local function headText()
  if not line.pinned and line.head == '-' then return ${formatLua(FREE, (field) => `line.${field}`)} end
  local row = line.head == line.tail and rows[line.head]
  if not line.pinned and line.offset == 0 and row and row.fence > 0 then
    if fields[line.head] then removed[#removed + 1] = line.head end
    dirty[line.head] = nil
    return ${formatLua(SINGLE, singleValue)}
  end
  if line.inline and rows[line.inline] then dirty[line.inline] = true end
  return ${formatLua(QUEUE, queueValue)}
end

local function write()
  if line.head ~= '-' and line.head == line.tail then get(line.head) end
  local isProlonged = prolongKey()
  local written = { '#', headText() }
  for start = 1, #removed, ${MOST_ARGUMENTS} do
    redis.call('HDEL', line.key, unpack(removed, start, math.min(start + ${MOST_ARGUMENTS - 1}, #removed)))
  end
  for id in pairs(dirty) do
    if #written >= ${MOST_ARGUMENTS} then
      redis.call('HSET', line.key, unpack(written))
      written = {}
    end
    written[#written + 1] = id
    written[#written + 1] = rowText(rows[id])
  end
  if #written > 0 then redis.call('HSET', line.key, unpack(written)) end
  if isProlonged then redis.call('PEXPIRE', line.key, string.format('%.0f', math.ceil((line.ttl - wall) / 1000))) end
end

-- A refused try changes nothing, but the holders may have to be told of it.
local function close()
  if line.isChanged then write() end
  for _, each in ipairs(messages) do redis.call('PUBLISH', each[1], each[2]) end
end
`

function singleValue(field: (typeof SINGLE.fields)[number]): string {
  switch (field) {
    case 'last':
    case 'ttl':
      return `line.${field}`
    case 'seen':
      return 'now'
    case 'id':
      return 'line.head'
    default:
      return `row.${field}`
  }
}

function queueValue(field: (typeof QUEUE.fields)[number]): string {
  switch (field) {
    case 'seen':
      return 'now'
    case 'declared':
    case 'pinned':
      return `line.${field} or '-'`
    default:
      return `line.${field}`
  }
}
