import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Pins the capacity of a counting resource. Reads the whole line: operators call it, and rarely.
 *
 *     KEYS[1]    the line (1 key)
 *     ARGV[1..3] retentionMs, declared, capacity
 *     result     1
 */
export const resizeScript = defineScript(`${lineLua}
local declared, capacity = tonumber(ARGV[2]), tonumber(ARGV[3])
open(KEYS[1], '-')
advance()
local isDeclared, tooLarge = declared == capacity, {}
local id = line.head
while id ~= '-' do
  local row = get(id)
  if row.expires > now then
    line.needed = math.max(line.needed, row.expires)
    if row.capacity ~= capacity then isDeclared = false end
    if row.fence == 0 and row.permits > capacity then tooLarge[#tooLarge + 1] = id end
  end
  id = row.next
end
-- Once every claim in the line declares the capacity, nothing has to be remembered.
if isDeclared then
  line.declared, line.pinned, line.capacity, line.ttl = nil, nil, capacity, 0
else
  line.declared, line.pinned = declared, capacity
end
line.isChanged = true
-- A waiter that wants more than the new capacity would block the line for ever.
for _, each in ipairs(tooLarge) do revoke(each) end
advance()
close()
return 1
`)
