import { createHash } from 'node:crypto'
import { FLOOR_SKEW_MS, HIGHEST_FENCE } from '../../../contract/constants.js'

/** A script for the server: its text, and the hash by which it is called. */
export interface Script {
  readonly sha: string
  readonly text: string
}

/**
 * The same script by the server's clock, and by a clock that the caller gives as the last argument,
 * for simulations.
 */
export interface Scripts {
  readonly byServer: Script
  readonly byCaller: Script
}

const SERVER_CLOCK = `
local time = redis.call('TIME')
local wall = time[1] * 1000000 + time[2]
`
const CALLERS_CLOCK = `
local wall = tonumber(table.remove(ARGV))
`

/**
 * What every script has: `wall`, the time in microseconds; `retentionUs`, how long an unused key is
 * kept, from its first argument; and the fence formula. Numbers of the size of a fence print as
 * 1.79e+15 with tostring and `..`: they are formatted, or kept as text.
 */
const PRELUDE = `
local retentionUs = ARGV[1] * 1000

-- The first and the last fence of the next grant: contract/fence.ts in Lua. Takes numbers or their
-- texts.
local function fencesAfter(last, floor, block)
  local fence = math.max(last + 1, math.min(floor + 1, wall + ${FLOOR_SKEW_MS * 1000}), wall)
  local newest = fence + (block - 1)
  if newest > ${HIGHEST_FENCE} then error('HOLDFAST_FENCE_LIMIT') end
  return fence, newest
end
`

/**
 * The admission rule for the next claim in line: contract/admit.ts in Lua. Takes numbers or their
 * texts.
 */
export const admissionLua = `
local function fits(used, permits, capacity)
  return used + permits <= tonumber(capacity)
end
`

/** The messages to a client, as Lua expressions; `parseMessage` in replies.ts reads them. */
export const messageLua = {
  granted: (fence: string, ids: string, key: string) =>
    `'granted ' .. ${fence} .. ' ' .. ${ids} .. ' ' .. ${key}`,
  lost: (id: string, key: string) => `'lost ' .. ${id} .. ' ' .. ${key}`,
  wanted: (id: string, key: string) => `'wanted ' .. ${id} .. ' ' .. ${key}`,
}

export function defineScript(body: string): Scripts {
  return {
    byServer: scriptOf(SERVER_CLOCK + PRELUDE + body),
    byCaller: scriptOf(CALLERS_CLOCK + PRELUDE + body),
  }
}

export function scriptOf(text: string): Script {
  return { sha: createHash('sha1').update(text).digest('hex'), text }
}
