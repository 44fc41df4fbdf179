/**
 * The commonest calls of all, in Lua: one that comes alone, and takes a free lock or gives it back while nobody waits. They go before everything
 * else, and make no function and no table: each would cost such a call about as much as one of the server's own. If it is another case, nothing has happened.
 */
export const aloneLua = `
if #KEYS == 1 then
  local key, call = KEYS[1], ARGV[2]
  local head = redis.call('HGET', key, '#')
  local id = string.match(call, '^release (%S+)')
  if id then
    local counter, holder, expires = string.match(head or '', '^(%d+ %d+) %d+ (%S+) %- %- %d+ (%d+) ')
    if holder == id and tonumber(expires) > wall then
      redis.call('HSET', key, '#', counter)
      return '1'
    end
  else
    local last, ttl = string.match(head or '0 0', '^(%d+) (%d+)$')
    if last then
      local id, lease, from, permits, capacity, floor, block = string.match(call, '^[qt]%l+ (%S+) (%d+) %d+ ()(%d+) (%d+) 0 (%d+) (%d+) ')
      local expires = id and wall + tonumber(lease)
      local fence = math.max(tonumber(last) + 1, math.min(tonumber(floor or 0) + 1, wall + SKEW_US), wall)
      local newest = fence + tonumber(block or 1) - 1
      if id and permits == capacity and newest <= FAR and tonumber(ttl) >= math.max(expires, newest) + retentionMs * 1000 then
        local fenceText, expiresText, wallText = string.format('%.0f', fence), string.format('%.0f', expires), string.format('%.0f', wall)
        redis.call('HSET', key, '#', (block == '1' and fenceText or string.format('%.0f', newest)) .. ' ' .. ttl .. ' ' .. wallText .. ' ' .. id
          .. ' - - ' .. fenceText .. ' ' .. expiresText .. ' ' .. wallText .. ' ' .. string.sub(call, from))
        return 'granted ' .. fenceText .. ' ' .. lease .. ' 0'
      end
    end
  end
end
`
