import { defineScript } from './script.js'
import { aloneLua } from './turn-alone.js'
import {
  giveBackLua,
  giveUpFirstLua,
  handOverLua,
  takeFreeLua,
  waitFirstLua,
  waitLastLua,
} from './turn-short.js'
import { wholeWayLua } from './turn-whole.js'

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
 *              1 FENCE ID/HEIR/... (and the next one, who is told by this, is the same client's; so are those right behind it)
 *              granted FENCE LEFT IS_WANTED | waiting LEFT IS_NEXT FREE_IN GRANTS_ABOVE | busy | capacity CAPACITY | gone
 *              error MESSAGE (this call failed and has changed nothing; the others stand)
 *
 * Durations are microseconds. The same id again gives the present answer, so a claim may be sent twice. A refusal writes nothing.
 *
 * Scripts spend their time on parsing and putting together. So the usual cases have short ways: to take a free lock and give it back while
 * nobody waits, and, where each wants the whole of it, to join the line and hand over to the next. All else goes through the whole of the line.
 */
export const turnScript = defineScript(`
${aloneLua}
${wholeWayLua}
local number, replies = 0, {}

local function handleRest()
  local match, format, byte, sub, redisCall = string.match, string.format, string.byte, string.sub, redis.call
  local wallText, retentionUs = format('%.0f', wall), retentionMs * 1000
  local R, L = byte('r'), byte('l')
  local known, head
  while number < #KEYS do
    number = number + 1
    local key, call, reply = KEYS[number], ARGV[number + 1], nil
    -- A release and the next claim of the same lock come together.
    if key ~= known then
      head = redisCall('HGET', key, '#')
      known = key
    end
    if byte(call) == R then
      local id, client = match(call, '^release (%S+) (%S+)$')
      if not head then
        reply = '0'
      elseif byte(head) == L then
        ${handOverLua}
        if not reply then
          ${giveUpFirstLua}
        end
      else
        ${giveBackLua}
      end
      if not reply then
        if not releaseWhole then prepare() end
        known, reply = nil, releaseWhole(key, id)
      end
    else
      local mode, id, lease, presence, from, permits, capacity, maxHold, floor, block = match(call,
        '^(%S+) (%S+) (%d+) (%d+) ()(%d+) (%d+) (%d+) (%d+) (%d+) ')
      if (mode == 'queue' or mode == 'try') and (permits == capacity or tonumber(permits) <= tonumber(capacity)) then
        if head and byte(head) == L then
          ${waitLastLua}
        else
          local last, ttl = '0', '0'
          if head then last, ttl = match(head, '^(%d+) (%d+)$') end
          if last then
            ${takeFreeLua}
          else
            ${waitFirstLua}
          end
        end
      end
      if not reply then
        if not claimWhole then prepare() end
        known, reply = nil, claimWhole(key, call)
      end
    end
    replies[number] = reply
  end
end

repeat
  local isDone, problem = pcall(handleRest)
  if not isDone then
    replies[number] = 'error ' .. string.gsub(type(problem) == 'table' and problem.err or tostring(problem), ',', ';')
  end
until isDone
return table.concat(replies, ',')
`)
