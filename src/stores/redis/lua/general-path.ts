import { boundLua, CALL, readAllLua } from './format.js'
import { lineLua } from './line.js'

/**
 * Any claim and any release, in Lua: `generalClaim(key, call)` and `generalRelease(key, id)`. To
 * create these functions costs more than a usual call takes, so `prepare` creates them when the
 * first call needs them.
 */
export const generalPathLua = `
local generalClaim, generalRelease
local function prepare()
${lineLua}
  generalClaim = function(key, call)
    ${readAllLua(CALL, 'call')}
    permits, capacity, lease = tonumber(permits), tonumber(capacity), tonumber(lease)

    local function newRow()
      return { fence = 0, expires = now + tonumber(presence), since = now, permits = permits, capacity = capacity,
        maxHold = tonumber(maxHold), floor = tonumber(floor), block = tonumber(block),
        prev = line.tail, next = '-', client = client, info = info }
    end

    local function grant(row)
      row.fence = nextFence(row.floor, row.block)
      row.expires = math.min(now + lease, latestEnd(row))
      enter(id, row)
      return claimText(id, row)
    end

    local function adopt(oldId, fence)
      local old = find(oldId)
      -- A hold that was exported before a downgrade names permits that are no longer its own.
      if not old or old.fence ~= tonumber(fence) or permits > old.permits then return 'gone' end
      notifyLost(oldId, old)
      local row = newRow()
      row.permits, row.capacity, row.prev, row.next = old.permits, old.capacity, old.prev, old.next
      remove(oldId)
      return grant(row)
    end

    local function steal()
      while line.head ~= line.first do revoke(line.head) end
      local row = newRow()
      row.prev, row.next = '-', line.head
      grant(row)
      advance()
      return claimText(id, row)
    end

    local function join()
      if line.first == '-' and fits(line.used, permits, line.pinned or capacity) then return grant(newRow()) end
      if line.first == '-' then notifyWanted() end
      if mode == 'try' then return 'busy' end
      local most = ${boundLua('mode')}
      if most and hasWaiters(most) then return 'full' end
      local row = newRow()
      enter(id, row)
      return waitingText(id, row)
    end

    local function answer()
      advance()
      local mine = find(id)
      if mine then
        -- WAIT may cover only what its own connection wrote, and another may have written the
        -- grant.
        if mine.fence > 0 then touch(id) end
        return claimText(id, mine)
      end
      local oldId, fence = string.match(mode, '^adopt/(%S+)/(%d+)$')
      if oldId then return adopt(oldId, fence) end
      local most = line.pinned or (line.head == '-' and capacity or line.capacity)
      local isKnown = capacity == most or capacity == line.declared
      if not isKnown or permits > most then return string.format('capacity %.0f', most) end
      if mode == 'steal' then return steal() end
      return join()
    end

    open(key, id)
    local reply = answer()
    close()
    return reply
  end

  generalRelease = function(key, id)
    open(key, id)
    local wasThere = '0'
    if find(id) then
      remove(id)
      wasThere = '1'
    end
    advance()
    close()
    return wasThere
  end
end
`
