import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Claims and releases, as many as one client makes in the same turn of its event loop; in a Cluster one at a time.
 *
 *     KEYS     for each call its line
 *     ARGV[1]  retentionMs
 *     then for each call one text, since each argument costs the client about as much as a call does:
 *       release ID
 *       MODE ID CLIENT (its channel) PERMITS CAPACITY LEASE PRESENCE MAXHOLD (0: none) FLOOR BLOCK INFO
 *     where MODE is queue, try, steal or adopt/OLD_ID/FENCE
 *     result   one text, the answers with a comma between:
 *              1 | 0 (a release found its claim, or did not)
 *              granted FENCE LEFT | waiting LEFT IS_NEXT FREE_IN GRANTS_ABOVE | busy | capacity CAPACITY | gone
 *              error MESSAGE (this call failed and has changed nothing; the others stand)
 *
 * Durations are microseconds. The same id again gives the present answer, so a claim may be sent twice. A refusal writes nothing.
 *
 * Most locks are free when they are taken, and nobody waits when they are given back: `quickClaim` and `quickRelease` do that with one read and
 * one write, and hardly any parsing, which is what scripts spend their time on. All else goes through the whole of the line.
 */
export const turnScript = defineScript(`
local claim, release
local mode, id, client, permits, capacity, lease, presence, maxHold, floor, block, info
local wallText = string.format('%.0f', wall)
local retentionUs = retentionMs * 1000

local function prepare()
${lineLua}
  claim = function(key)
    permits, capacity, lease = tonumber(permits), tonumber(capacity), tonumber(lease)

    local function newRow()
      return { fence = 0, expires = now + tonumber(presence), since = now, permits = permits, capacity = capacity,
        maxHold = tonumber(maxHold), floor = tonumber(floor), block = tonumber(block),
        prev = line.tail, next = '-', client = client, info = info }
    end

    local function grant(row)
      row.fence = nextFence(row.floor, row.block)
      row.expires = math.min(now + lease, latestEnd(row))
      enter(id, row)
      return claimText(id, row)
    end

    local function adopt(oldId, fence)
      local old = find(oldId)
      -- What was passed on before it shrank tells of permits that are others' by now.
      if not old or old.fence ~= tonumber(fence) or permits > old.permits then return 'gone' end
      tellLost(oldId, old)
      local row = newRow()
      -- The place is taken over as it is.
      row.permits, row.capacity, row.prev, row.next = old.permits, old.capacity, old.prev, old.next
      remove(oldId)
      return grant(row)
    end

    local function steal()
      while line.head ~= line.first do rob(line.head) end
      local row = newRow()
      row.prev, row.next = '-', line.head
      local reply = grant(row)
      settle()
      return reply
    end

    local function join()
      if line.first == '-' and line.used + permits <= (line.pinned or capacity) then return grant(newRow()) end
      if mode == 'try' then return 'busy' end
      local row = newRow()
      enter(id, row)
      return waitingText(id, row)
    end

    local function answer()
      settle()
      local mine = find(id)
      if mine then return claimText(id, mine) end
      local oldId, fence = string.match(mode, '^adopt/(%S+)/(%d+)$')
      if oldId then return adopt(oldId, fence) end
      local most = line.pinned or (line.head == '-' and capacity or line.capacity)
      local isKnown = capacity == most or capacity == line.declared
      if not isKnown or permits > most then return string.format('capacity %.0f', most) end
      if mode == 'steal' then return steal() end
      return join()
    end

    open(key, id)
    local reply = answer()
    close()
    return reply
  end

  release = function(key)
    open(key, id)
    local wasThere = '0'
    if find(id) then
      remove(id)
      wasThere = '1'
    end
    settle()
    close()
    return wasThere
  end
end

-- A claim on a line that nobody is in, without anything special about it. Tells nothing if it is another case.
local function quickClaim(key)
  if (mode ~= 'queue' and mode ~= 'try') or maxHold ~= '0' or tonumber(permits) > tonumber(capacity) then return end
  local text = redis.call('HGET', key, '#')
  local last, ttl = '0', '0'
  if text then
    last, ttl = string.match(text, '^(%d+) (%d+)$')
    if not last then return end
  end
  local fence = math.max(tonumber(last) + 1, math.min(tonumber(floor) + 1, wall + SKEW_US), wall)
  local newest = fence + tonumber(block) - 1
  if newest > FAR then error('HOLDFAST_FENCE_LIMIT') end
  local expires = wall + tonumber(lease)
  local endsAt = math.max(expires, newest) + retentionUs
  local isKeptLonger = tonumber(ttl) < endsAt
  if isKeptLonger then ttl = string.format('%.0f', endsAt + retentionUs) end
  local fenceText = string.format('%.0f', fence)
  local lastText = newest == fence and fenceText or string.format('%.0f', newest)
  redis.call('HSET', key, '#', lastText .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. id .. ' ' .. fenceText .. ' '
    .. string.format('%.0f', expires) .. ' ' .. wallText .. ' ' .. permits .. ' ' .. capacity .. ' 0 ' .. floor .. ' ' .. block
    .. ' - - ' .. client .. ' ' .. info)
  if isKeptLonger then redis.call('PEXPIRE', key, string.format('%.0f', math.ceil((endsAt + retentionUs - wall) / 1000))) end
  return 'granted ' .. fenceText .. ' ' .. lease
end

-- The release of the only claim in a line.
local function quickRelease(key)
  local text = redis.call('HGET', key, '#')
  if not text then return '0' end
  local counter, holder, expires = string.match(text, '^(%d+ %d+) %d+ (%S+) %d+ (%d+) ')
  if holder ~= id or tonumber(expires) <= wall then return end
  redis.call('HSET', key, '#', counter)
  return '1'
end

local function handle(key, call)
  id = string.match(call, '^release (%S+)$')
  local isRelease = id ~= nil
  if not isRelease then
    mode, id, client, permits, capacity, lease, presence, maxHold, floor, block, info = string.match(call,
      '^(%S+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (.*)$')
  end
  local reply = (isRelease and quickRelease or quickClaim)(key)
  if reply then return reply end
  if not claim then prepare() end
  return (isRelease and release or claim)(key)
end

local replies = {}
for number, key in ipairs(KEYS) do
  local isDone, reply = pcall(handle, key, ARGV[number + 1])
  if not isDone then
    reply = 'error ' .. string.gsub(type(reply) == 'table' and reply.err or tostring(reply), ',', ';')
  end
  replies[number] = reply
end
return table.concat(replies, ',')
`)
