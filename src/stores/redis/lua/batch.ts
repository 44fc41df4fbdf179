import { EXCLUSIVE } from '../../../contract/constants.js'
import { CALL, readLua, TTL_START } from './format.js'
import { generalPathLua } from './general-path.js'
import { admissionLua, defineScript } from './script.js'
import {
  handOverLua,
  leaveFirstLua,
  readFreeLua,
  releaseSingleLua,
  takeFreeLua,
  waitFirstLua,
  waitLastLua,
} from './short-paths.js'

/**
 * The first characters of a release and of a head in the form QUEUE, as bytes: no other call or
 * head begins so.
 */
const RELEASE = 'r'.charCodeAt(0)
const QUEUED = 'l'.charCodeAt(0)

/**
 * The usual call: to a free exclusive lock, or from its only holder. It sets `reply`, and in any
 * other case has done nothing.
 */
const USUAL_CALL = `
  if string.byte(call) == ${RELEASE} then
    local id = string.match(call, '^release (%S+)')
    if head and string.byte(head) ~= ${QUEUED} then
      ${releaseSingleLua}
    end
  else
    local last, ttl = '0', '0'
    if head then last, ttl = string.sub(head, 1, ${TTL_START - 2}), string.sub(head, ${TTL_START}) end
    if tonumber(last) and tonumber(ttl) then
      ${readLua(
        CALL,
        'call',
        {
          ...{
            mode: '~[qt]%l+',
            id: 'id',
            lease: 'lease',
            permits: `=${EXCLUSIVE}`,
            capacity: `=${EXCLUSIVE}`,
          },
          ...{ maxHold: '=0', floor: 'floor', block: 'block' },
        },
        { permits: 'from' },
      )}
      if id then
        wallText = wallText or string.format('%.0f', wall)
        ${takeFreeLua}
      end
    end
  end
`

/**
 * Claims and releases: all that one client makes in the same tick of its event loop; in a Cluster
 * one at a time.
 *
 *     KEYS     for each call its line (any number of keys)
 *     ARGV[1]  retentionMs
 *     then for each call one text, since each argument costs the client about as much as a call does:
 *       release ID CLIENT (the channel of the client that releases)
 *       MODE ID LEASE PRESENCE PERMITS CAPACITY MAXHOLD (0: none) FLOOR BLOCK CLIENT (its channel) INFO
 *     where MODE is queue, try, steal, adopt/OLD_ID/FENCE or that of boundedMode() in format.ts
 *     result   one text, the answers with a comma between:
 *              1 | 0 (a release found its claim, or did not)
 *              1 FENCE ID/HEIR/... (it did, and the next holder is a claim of the same client, with its heirs)
 *              FENCE (granted for the whole lease, and nobody waits)
 *              granted FENCE LEFT IS_WANTED | waiting LEFT IS_NEXT FREE_IN GRANTS_ABOVE | busy | full | capacity CAPACITY | gone
 *              error MESSAGE (this call failed and has changed nothing; the others count)
 *
 * Durations are microseconds. The same id again gives the present answer, so a claim may be sent
 * twice. A refusal writes nothing.
 */
export const batchScript = defineScript(`
local known, head, wallText
-- A call that comes alone goes before everything else, and creates no function and no table, which
-- would cost it a fifth of its time.
if #KEYS == 1 then
  local key, call, reply = KEYS[1], ARGV[2], nil
  known, head = key, redis.call('HGET', key, '#')
  ${USUAL_CALL}
  if reply then return reply end
end
${admissionLua}
${generalPathLua}
local number, replies = 0, {}
local fullKey, fullTerms
wallText = wallText or string.format('%.0f', wall)

local function handleRest()
  while number < #KEYS do
    number = number + 1
    local key, call, reply = KEYS[number], ARGV[number + 1], nil
    -- A release and the next claim of the same lock come together.
    if key ~= known then
      known, head = key, redis.call('HGET', key, '#')
    end
    local isQueue = head and string.byte(head) == ${QUEUED}
    if #KEYS > 1 then
      ${USUAL_CALL}
    end
    if not reply and string.byte(call) == ${RELEASE} then
      local id, client = string.match(call, '^release (%S+) (%S+)$')
      if not head then
        reply = '0'
      elseif isQueue then
        ${handOverLua}
        if not reply then
          ${leaveFirstLua}
        end
      end
      if not reply then
        if not generalRelease then prepare() end
        known, reply = nil, generalRelease(key, id)
      end
    elseif not reply then
      ${readLua(
        CALL,
        'call',
        {
          ...{
            mode: 'mode',
            id: 'id',
            lease: 'lease',
            presence: 'presence',
            permits: 'permits',
            capacity: 'capacity',
          },
          ...{ maxHold: 'maxHold', floor: 'floor', block: 'block' },
        },
        { permits: 'from' },
      )}
      if (mode == 'queue' or mode == 'try') and fits(0, permits, capacity) then
        if isQueue then
          ${waitLastLua}
        else
          ${readFreeLua}
          if not last then
            ${waitFirstLua}
          elseif maxHold == '0' then
            ${takeFreeLua}
          end
        end
      end
      -- The line is as it was when the last call was refused: to count its waiters takes time.
      local terms = fullKey == key and mode .. permits .. ' ' .. capacity
      if not reply and terms and terms == fullTerms and redis.call('HEXISTS', key, id) == 0 then reply = 'full' end
      if not reply then
        if not generalClaim then prepare() end
        known, reply = nil, generalClaim(key, call)
        if reply == 'full' then fullKey, fullTerms = key, mode .. permits .. ' ' .. capacity end
      end
    end
    if reply ~= 'full' then fullKey = nil end
    replies[number] = reply
  end
end

repeat
  local isDone, problem = pcall(handleRest)
  if not isDone then
    known = nil
    replies[number] = 'error ' .. string.gsub(type(problem) == 'table' and problem.err or tostring(problem), ',', ';')
  end
until isDone
return table.concat(replies, ',')
`)
