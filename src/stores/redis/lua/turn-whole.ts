import { lineLua } from './line.js'

/**
 * A claim and a release by the whole of the line, in Lua: `claimWhole(key, call)` and `releaseWhole(key, id)`. What is made here costs more than a
 * usual call, so it is made when it is needed.
 */
export const wholeWayLua = `
local claimWhole, releaseWhole
local function prepare()
${lineLua}
  claimWhole = function(key, call)
    local mode, id, lease, presence, permits, capacity, maxHold, floor, block, channel, info = string.match(call,
      '^(%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%S+) (.*)$')
    permits, capacity, lease = tonumber(permits), tonumber(capacity), tonumber(lease)

    local function newRow()
      return { fence = 0, expires = now + tonumber(presence), since = now, permits = permits, capacity = capacity,
        maxHold = tonumber(maxHold), floor = tonumber(floor), block = tonumber(block),
        prev = line.tail, next = '-', client = channel, info = info }
    end

    local function grant(row)
      row.fence = nextFence(row.floor, row.block)
      row.expires = math.min(now + lease, latestEnd(row))
      enter(id, row)
      return claimText(id, row)
    end

    local function adopt(oldId, fence)
      local old = find(oldId)
      -- What was passed on before it shrank tells of permits that are others' by now.
      if not old or old.fence ~= tonumber(fence) or permits > old.permits then return 'gone' end
      tellLost(oldId, old)
      local row = newRow()
      -- The place is taken over as it is.
      row.permits, row.capacity, row.prev, row.next = old.permits, old.capacity, old.prev, old.next
      remove(oldId)
      return grant(row)
    end

    local function steal()
      while line.head ~= line.first do rob(line.head) end
      local row = newRow()
      row.prev, row.next = '-', line.head
      grant(row)
      settle()
      return claimText(id, row)
    end

    local function join()
      if line.first == '-' and line.used + permits <= (line.pinned or capacity) then return grant(newRow()) end
      if line.first == '-' then tellWanted() end
      if mode == 'try' then return 'busy' end
      local row = newRow()
      enter(id, row)
      return waitingText(id, row)
    end

    local function answer()
      settle()
      local mine = find(id)
      if mine then return claimText(id, mine) end
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

  releaseWhole = function(key, id)
    open(key, id)
    local wasThere = '0'
    if find(id) then
      remove(id)
      wasThere = '1'
    end
    settle()
    close()
    return wasThere
  end
end
`
