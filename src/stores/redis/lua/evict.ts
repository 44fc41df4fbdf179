import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * An operator's break: removes the hold with a fence, or every hold, tells their clients, and
 * promotes.
 *
 *     KEYS[1]    the line (1 key)
 *     ARGV[1,2]  retentionMs, fence (- every hold)
 *     result     for each hold that was revoked: ID PERMITS FENCE AGE LEFT INFO
 */
export const evictScript = defineScript(`${lineLua}
local fence = tonumber(ARGV[2])
local revoked = {}
open(KEYS[1], '-')
advance()
local id = line.head
while id ~= line.first do
  local row = get(id)
  local next = row.next
  if not fence or row.fence == fence then
    revoked[#revoked + 1] = string.format('%s %.0f %.0f %.0f %.0f ', id, row.permits, row.fence, now - row.since,
      row.expires - now) .. row.info
    revoke(id)
  end
  id = next
end
advance()
close()
return revoked
`)
