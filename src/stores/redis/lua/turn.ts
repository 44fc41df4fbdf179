import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Claims and releases, as many as one client makes in the same turn of its event loop; in a Cluster one at a time.
 *
 *     KEYS     for each call its line
 *     ARGV[1]  retentionMs
 *     then for each call one text, since each argument costs the client about as much as a call does:
 *       release ID CLIENT (the channel of whoever releases)
 *       MODE ID LEASE PRESENCE PERMITS CAPACITY MAXHOLD (0: none) FLOOR BLOCK CLIENT (its channel) INFO
 *     where MODE is queue, try, steal or adopt/OLD_ID/FENCE, and from PERMITS on it is as a claim keeps it
 *     result   one text, the answers with a comma between:
 *              1 | 0 (a release found its claim, or did not)
 *              1 FENCE ID (and the next one, who is told by this, is the same client's)
 *              granted FENCE LEFT | waiting LEFT IS_NEXT FREE_IN GRANTS_ABOVE | busy | capacity CAPACITY | gone
 *              error MESSAGE (this call failed and has changed nothing; the others stand)
 *
 * Durations are microseconds. The same id again gives the present answer, so a claim may be sent twice. A refusal writes nothing.
 *
 * Scripts spend their time on parsing and putting together. So the usual cases have short ways, which read and write what they must and copy
 * the rest as text: to take a free lock and give it back while nobody waits, and, where each wants the whole of it, to join the line and hand
 * over to the next. All else goes through the whole of the line.
 */
export const turnScript = defineScript(`
local claim, release
local match, format, sub, redisCall = string.match, string.format, string.sub, redis.call
local mode, id, client, lease, presence, wanted, permits, capacity, maxHold, floor, block
local wallText = string.format('%.0f', wall)
local retentionUs = retentionMs * 1000

local function prepare()
${lineLua}
  claim = function(key)
    permits, capacity, lease = tonumber(permits), tonumber(capacity), tonumber(lease)
    local channel, info = string.match(wanted, '^%d+ %d+ %d+ %d+ %d+ (%S+) (.*)$')

    local function newRow()
      return { fence = 0, expires = now + tonumber(presence), since = now, permits = permits, capacity = capacity,
        maxHold = tonumber(maxHold), floor = tonumber(floor), block = tonumber(block),
        prev = line.tail, next = '-', client = channel, info = info }
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

-- The short ways. Each tells nothing, and has done nothing, if it is another case.

-- A line in which nobody is.
local function takeFree(key, last, ttl)
  if maxHold ~= '0' then return end
  local fence, newest = fencesAfter(tonumber(last), tonumber(floor), tonumber(block))
  local expires = wall + tonumber(lease)
  local endsAt = math.max(expires, newest) + retentionUs
  local isKeptLonger = tonumber(ttl) < endsAt
  if isKeptLonger then ttl = format('%.0f', endsAt + retentionUs) end
  local fenceText = fence == wall and wallText or format('%.0f', fence)
  local lastText = newest == fence and fenceText or format('%.0f', newest)
  redisCall('HSET', key, '#', lastText .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. id .. ' - - ' .. fenceText .. ' '
    .. format('%.0f', expires) .. ' ' .. wallText .. ' ' .. wanted)
  if isKeptLonger then redisCall('PEXPIRE', key, format('%.0f', math.ceil((endsAt + retentionUs - wall) / 1000))) end
  return 'granted ' .. fenceText .. ' ' .. lease
end

-- The row of a claim that begins to wait, if the key lives long enough for it.
local function waitingRow(behind, last, ttl)
  local expires = wall + tonumber(presence)
  if tonumber(ttl) < math.max(expires, tonumber(last)) + retentionUs then return end
  return '- ' .. behind .. format(' 0 %.0f ', expires) .. wallText .. ' ' .. wanted
end

-- One holds, and nobody waits yet.
local function waitFirst(key, head)
  local last, ttl, seen, holder, hold, expires, held, most = match(head,
    '^(%d+) (%d+) (%d+) (%S+) %- (%- %d+ (%d+) %d+ (%d+) (%d+) .*)$')
  if not last or holder == id or most ~= capacity or tonumber(held) + tonumber(permits) <= tonumber(most) then return end
  if tonumber(expires) <= wall or tonumber(seen) > wall then return end
  if mode == 'try' then return 'busy' end
  local row = waitingRow(holder, last, ttl)
  if not row then return end
  redisCall('HSET', key, '#', 'line ' .. last .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. held .. ' ' .. expires .. ' ' .. most .. ' '
    .. holder .. ' ' .. id .. ' ' .. id .. ' - -', holder, id .. ' ' .. hold, id, row)
  return 'waiting ' .. presence .. format(' 1 %.0f ', tonumber(expires) - wall) .. last
end

local LINE = '^line (%d+) (%d+) (%d+) 0 (%d+) (%d+) (%d+) (%S+) (%S+) (%S+) %- %-$'

-- Others wait already.
local function waitLast(key, head)
  local last, ttl, seen, used, soonest, most, holder, first, tail = match(head, LINE)
  if not last or first == '-' or most ~= capacity or tonumber(soonest) <= wall or tonumber(seen) > wall then return end
  local found = redisCall('HMGET', key, id, first, tail)
  if found[1] or tonumber(match(found[2], '^%S+ %S+ 0 (%d+)')) <= wall then return end
  if mode == 'try' then return 'busy' end
  local row = waitingRow(tail, last, ttl)
  if not row then return end
  redisCall('HSET', key, '#', 'line ' .. last .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. used .. ' ' .. soonest .. ' ' .. most .. ' '
    .. holder .. ' ' .. first .. ' ' .. id .. ' - -', tail, id .. match(found[3], '^%S+(.*)$'), id, row)
  return 'waiting ' .. presence .. ' 0 - ' .. last
end

local function quickClaim(key)
  if (mode ~= 'queue' and mode ~= 'try') or tonumber(permits) > tonumber(capacity) then return end
  local head = redisCall('HGET', key, '#')
  if not head then return takeFree(key, '0', '0') end
  if sub(head, 1, 1) == 'l' then return waitLast(key, head) end
  local last, ttl = match(head, '^(%d+) (%d+)$')
  if last then return takeFree(key, last, ttl) end
  return waitFirst(key, head)
end

-- The only hold goes to the next in line, who wants all of it, too.
local function handOver(key, head)
  local last, ttl, seen, used, _, most, holder, first, tail = match(head, LINE)
  if holder ~= id or first == '-' or tonumber(seen) > wall then return end
  local found = redisCall('HMGET', key, id, first)
  local endsAt, held = match(found[1], '^%S+ %S+ %d+ (%d+) %d+ (%d+) ')
  if held ~= used or tonumber(endsAt) <= wall then return end
  local second, expires, claim, share, above, count, receiver = match(found[2],
    '^(%S+) %S+ 0 (%d+) %d+ ((%d+) %d+ 0 (%d+) (%d+) (%S+) .*)$')
  if share ~= most or tonumber(expires) <= wall then return end
  local fence, newest = fencesAfter(tonumber(last), tonumber(above), tonumber(count))
  if tonumber(ttl) < math.max(newest, wall) + retentionUs then return end
  local fenceText = fence == wall and wallText or format('%.0f', fence)
  local lastText = newest == fence and fenceText or format('%.0f', newest)
  local row = ' - ' .. fenceText .. ' ' .. expires .. ' ' .. wallText .. ' ' .. claim
  if second == '-' then
    redisCall('HSET', key, '#', lastText .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. first .. ' -' .. row)
    redisCall('HDEL', key, id, first)
  else
    redisCall('HSET', key, '#', 'line ' .. lastText .. ' ' .. ttl .. ' ' .. wallText .. ' 0 ' .. share .. ' ' .. expires .. ' ' .. most
      .. ' ' .. first .. ' ' .. second .. ' ' .. tail .. ' - -', first, second .. row)
    redisCall('HDEL', key, id)
  end
  if receiver == client then return '1 ' .. fenceText .. ' ' .. first end
  redisCall('PUBLISH', receiver, 'granted ' .. fenceText .. ' ' .. first .. ' ' .. key)
  return '1'
end

local function quickRelease(key)
  local head = redisCall('HGET', key, '#')
  if not head then return '0' end
  if sub(head, 1, 1) == 'l' then return handOver(key, head) end
  local counter, holder, expires = match(head, '^(%d+ %d+) %d+ (%S+) %- %- %d+ (%d+) ')
  if holder ~= id or tonumber(expires) <= wall then return end
  redisCall('HSET', key, '#', counter)
  return '1'
end

local function handle(key, call)
  id, client = match(call, '^release (%S+) (%S+)$')
  local isRelease = id ~= nil
  if not isRelease then
    mode, id, lease, presence, wanted, permits, capacity, maxHold, floor, block = match(call,
      '^(%S+) (%S+) (%d+) (%d+) ((%d+) (%d+) (%d+) (%d+) (%d+) .*)$')
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
