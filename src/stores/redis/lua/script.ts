import { createHash } from 'node:crypto'

/** A script for the server: its text, and the hash by which it is called. */
export interface Script {
  readonly sha: string
  readonly text: string
}

/** The same script by the server's clock, and by a clock that the caller gives as the last argument, for simulations. */
export interface Scripts {
  readonly byServer: Script
  readonly byCaller: Script
}

/** Numbers of the size of a fence print as 1.79e+15 with tostring and `..`: they are formatted, or kept as text. */
const COMMON = `
local FAR, SKEW_US = 9007199254740991, 60000000
local retentionMs = tonumber(ARGV[1])

-- The first and the last fence of the next grant.
local function fencesAfter(last, floor, block)
  local fence = math.max(last + 1, math.min(floor + 1, wall + SKEW_US), wall)
  local newest = fence + block - 1
  if newest > FAR then error('HOLDFAST_FENCE_LIMIT') end
  return fence, newest
end
`
const SERVER_CLOCK = `
local time = redis.call('TIME')
local wall = time[1] * 1000000 + time[2]
`
const CALLERS_CLOCK = `
local wall = tonumber(table.remove(ARGV))
`

/** Every script has the time (`wall`) and, as its first argument, how long an unused key is kept (`retentionMs`). */
export function defineScript(body: string): Scripts {
  return {
    byServer: script(SERVER_CLOCK + COMMON + body),
    byCaller: script(CALLERS_CLOCK + COMMON + body),
  }
}

function script(text: string): Script {
  return { sha: createHash('sha1').update(text).digest('hex'), text }
}
