import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Takes a waiting claim out of the line, tells its client, and promotes.
 *
 *     KEYS[1]    the line (1 key)
 *     ARGV[1,2]  retentionMs, id
 *     result     the claim as `evict` shows a hold, with the fence 0; '': it does not wait
 */
export const cancelScript = defineScript(`${lineLua}
local cancelled = ''
open(KEYS[1], '-')
advance()
local row = find(ARGV[2])
if row and row.fence == 0 then
  cancelled = string.format('%s %.0f 0 %.0f %.0f ', ARGV[2], row.permits, now - row.since, row.expires - now) .. row.info
  revoke(ARGV[2])
  advance()
end
close()
return cancelled
`)
