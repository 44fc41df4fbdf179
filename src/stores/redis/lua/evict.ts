import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * An operator's break: removes the hold with a fence, or every hold, tells the robbed, and promotes.
 *
 *     KEYS[1]    the line
 *     ARGV[1,2]  retentionMs, fence (- every hold)
 *     result     for each of the robbed: ID PERMITS FENCE AGE LEFT INFO
 */
export const evictScript = defineScript(`${lineLua}
local fence = tonumber(ARGV[2])
local robbed = {}
open(KEYS[1], '-')
settle()
local id = line.head
while id ~= line.first do
  local row = get(id)
  local next = row.next
  if not fence or row.fence == fence then
    robbed[#robbed + 1] = string.format('%s %.0f %.0f %.0f %.0f ', id, row.permits, row.fence, now - row.since,
      row.expires - now) .. row.info
    rob(id)
  end
  id = next
end
settle()
close()
return robbed
`)
