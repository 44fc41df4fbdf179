import { EXCLUSIVE, HIGHEST_FENCE } from '../../../contract/constants.js'
import { FENCE_LIMIT } from '../../shared/failures.js'
import { readLua, SINGLE, textLua } from './format.js'
import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Heartbeats: renews holds and places in line, and answers with the state of each.
 *
 *     KEYS     one or more lines, each once; in a Cluster just one (any number of keys)
 *     ARGV[1]  retentionMs
 *     then for each line: the number of its beats, and for each beat:
 *              ID, LEASE, PRESENCE, PERMITS (- as they are), BLOCK (- none) or FIRST/COUNT (just these fences)
 *     result   one text, the answers in the order of the beats with a comma between:
 *              held FENCE LEFT BLOCK (- none) IS_WANTED | waiting LEFT IS_NEXT FREE_IN GRANTS_ABOVE | gone
 *              held FENCE LEFT - IS_WANTED NEWEST (the fences that were named are refused)
 *              error MESSAGE (for every beat of a line that cannot be read)
 *
 * Durations are microseconds. An id that is not in its line is gone for ever: nothing is created
 * here. A client may have thousands of holds, and nobody waits for most of them: `renewSingle` is
 * for those.
 */
export const pulseScript = defineScript(`
local replies = {}
local beatAll
local wallText = string.format('%.0f', wall)

local function prepare()
${lineLua}
  -- Since an exclusive claim was granted, no other claim has got a fence of this line.
  local function takeFences(row, first, count)
    if first <= (row.permits == ${EXCLUSIVE} and row.fence or line.last) then return end
    local newest = first + (count - 1)
    if newest > ${HIGHEST_FENCE} then error('${FENCE_LIMIT}') end
    row.fence, row.block, line.last = first, math.max(row.block, count), math.max(line.last, newest)
  end

  local function refresh(first, last)
    local hasShrunk = false
    for place = first, last, 5 do
      local id = ARGV[place]
      local row = find(id)
      if row and row.fence == 0 then
        row.expires = math.max(row.expires, now + tonumber(ARGV[place + 2]))
      elseif row then
        row.expires = math.max(row.expires, math.min(now + tonumber(ARGV[place + 1]), latestEnd(row)))
        if ARGV[place + 4] ~= '-' then
          local from, count = string.match(ARGV[place + 4], '^(%d+)/(%d+)$')
          if from then takeFences(row, tonumber(from), tonumber(count)) end
        end
        local permits = tonumber(ARGV[place + 3])
        if permits and permits < row.permits then
          line.used = line.used - row.permits + permits
          row.permits = permits
          hasShrunk = true
        end
      end
      if row then
        line.needed = math.max(line.needed, row.expires)
        touch(id)
      end
    end
    return hasShrunk
  end

  local function answer(id, wish)
    local row = find(id)
    if not row then return 'gone' end
    if row.fence == 0 then return waitingText(id, row) end
    local block, newest = '-', ''
    if wish ~= '-' then
      local count, from = tonumber(wish), string.match(wish, '^(%d+)/')
      if count then
        block = string.format('%.0f', nextFence(0, count))
        row.block = math.max(row.block, count)
        touch(id)
      elseif row.fence ~= tonumber(from) then
        newest = string.format(' %.0f', line.last)
      end
    end
    return string.format('held %.0f %.0f %s %d%s', row.fence, row.expires - now, block, line.first == '-' and 0 or 1, newest)
  end

  beatAll = function(key, first, last)
    open(key, ARGV[first])
    advance()
    if refresh(first, last) then advance() end
    local answers = {}
    for place = first, last, 5 do
      answers[#answers + 1] = answer(ARGV[place], ARGV[place + 4])
    end
    close()
    return answers
  end
end

-- The renewal of the only claim in a line. Returns nil, and has done nothing, in any other case.
local function renewSingle(key, place)
  if ARGV[place + 3] ~= '-' or ARGV[place + 4] ~= '-' then return end
  local text = redis.call('HGET', key, '#')
  if not text then return 'gone' end
  ${readLua(
    SINGLE,
    'text',
    {
      last: 'last',
      ttl: 'ttl',
      seen: 'seen',
      id: 'id',
      next: '=-',
      prev: '=-',
      fence: 'fence',
      expires: 'expires',
      maxHold: '=0',
    },
    { since: 'from' },
  )}
  if id ~= ARGV[place] then return end
  expires = tonumber(expires)
  if expires <= wall or tonumber(seen) > wall then return end
  expires = math.max(expires, wall + ARGV[place + 1])
  local endsAt = expires + retentionUs
  local isProlonged = tonumber(ttl) < endsAt
  if isProlonged then ttl = string.format('%.0f', endsAt + retentionUs) end
  local expiresText = string.format('%.0f', expires)
  redis.call('HSET', key, '#', ${textLua(
    SINGLE,
    {
      last: 'last',
      ttl: 'ttl',
      seen: 'wallText',
      id: 'id',
      next: "'-'",
      prev: "'-'",
      fence: 'fence',
      expires: 'expiresText',
    },
    'string.sub(text, from)',
  )})
  if isProlonged then redis.call('PEXPIRE', key, string.format('%.0f', math.ceil((endsAt + retentionUs - wall) / 1000))) end
  return 'held ' .. fence .. string.format(' %.0f - 0', expires - wall)
end

local function beat(key, first, last)
  local reply = last - first == 4 and renewSingle(key, first)
  if reply then return { reply } end
  if not beatAll then prepare() end
  return beatAll(key, first, last)
end

local at = 2
for _, key in ipairs(KEYS) do
  local first, last = at + 1, at + 5 * tonumber(ARGV[at])
  at = last + 1
  local isDone, answers = pcall(beat, key, first, last)
  local message = not isDone and string.gsub(type(answers) == 'table' and answers.err or tostring(answers), ',', ';')
  for place = first, last, 5 do
    replies[#replies + 1] = message and 'error ' .. message or answers[(place - first) / 5 + 1]
  end
end
return table.concat(replies, ',')
`)
