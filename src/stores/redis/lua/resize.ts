import { lineLua } from './line.js'
import { defineScript } from './script.js'

/**
 * Pins the capacity of a counting resource. Reads the whole line: it is an operator's call.
 *
 *     KEYS[1]    the line
 *     ARGV[1..3] retentionMs, declared, capacity
 */
export const resizeScript = defineScript(`${lineLua}
local declared, capacity = tonumber(ARGV[2]), tonumber(ARGV[3])
open(KEYS[1], '-')
settle()
local isDeclared, tooLarge = declared == capacity, {}
local id = line.head
while id ~= '-' do
  local row = get(id)
  if row.expires > now then
    line.need = math.max(line.need, row.expires)
    if row.capacity ~= capacity then isDeclared = false end
    if row.fence == 0 and row.permits > capacity then tooLarge[#tooLarge + 1] = id end
  end
  id = row.next
end
-- Nothing to remember once everybody in the line declares it anyway; until then the line would still go by the old one.
if isDeclared then
  line.declared, line.pinned, line.capacity, line.ttl = nil, nil, capacity, 0
else
  line.declared, line.pinned = declared, capacity
end
line.isChanged = true
-- A waiter that wants more than there will ever be would bar the line for good: send it away to be told so.
for _, each in ipairs(tooLarge) do rob(each) end
settle()
close()
return 1
`)
