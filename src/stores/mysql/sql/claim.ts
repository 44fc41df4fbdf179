import { fits } from '../../shared/sql.js'
import { advanceLine, FAR, findFirst, openLine, removeClaim, takeFence, tellLost, WAITING } from './line.js'
import type { MysqlNames } from './names.js'

/** The modes of a claim, and a release. */
export const MODE = { try: 0, queue: 1, steal: 2, adopt: 3, release: 4 } as const

/** The fields of a claim, as parameters or as variables. Durations are microseconds. */
export const CLAIM_VALUES: readonly (readonly [name: string, type: string])[] = [
  ['p_mode', 'TINYINT'],
  ['p_id', 'VARBINARY(255)'],
  ['p_client', 'VARBINARY(255)'],
  ['p_permits', 'BIGINT'],
  ['p_capacity', 'BIGINT'],
  ['p_lease', 'BIGINT'],
  ['p_presence', 'BIGINT'],
  // Null: no cap.
  ['p_max_hold', 'BIGINT'],
  ['p_floor', 'BIGINT'],
  ['p_block', 'BIGINT'],
  ['p_info', 'LONGBLOB'],
  // The hold to adopt.
  ['p_old_id', 'VARBINARY(255)'],
  ['p_old_fence', 'BIGINT'],
]

/** The same for claims that join only if fewer than so many wait; null: however many wait. */
export const BOUNDED_VALUES: typeof CLAIM_VALUES = [...CLAIM_VALUES, ['p_max_waiters', 'BIGINT']]

/** Creates the line of a claim if it is missing, and locks it in the same step. */
export function makeLine(names: MysqlNames): string {
  return `
    INSERT INTO ${names.line} (line, space, resource, last, seen, shift, used, soonest, next_place, last_place, capacity)
      VALUES (v_line, p_space, p_resource, 0, 0, 0, 0, ${FAR}, NULL, 0, 0) ON DUPLICATE KEY UPDATE last = last;${openLine(names)}`
}

/**
 * Joins the line, after `advanceLine`. The answer is in `v_reply`; a known id gets its present one.
 * `isBounded`: the claim has the `BOUNDED_VALUES`.
 */
export function joinLine(names: MysqlNames, isBounded = false): string {
  const { claim } = names
  const grant = `${takeFence('p_floor', 'p_block')}
    SET v_expires = v_now + LEAST(p_lease, COALESCE(p_max_hold, p_lease));
    SET v_soonest = LEAST(v_soonest, v_expires);
    SET v_reply = CONCAT('{"status":"granted","fence":', v_fence, ',"leaseMs":', (v_expires - v_now) / 1000, '}');`
  const enter = (fence: string, place: string): string => `
    INSERT INTO ${claim} (line, place, id, client, permits, capacity, fence, expires, max_hold, floor_fence, block, since, info)
      VALUES (v_line, ${place}, p_id, p_client, p_permits, p_capacity, ${fence}, v_expires, p_max_hold, p_floor, p_block, v_now, p_info);
    SET v_dirty = TRUE;`
  const isFull = `p_mode = ${MODE.queue} AND p_max_waiters <=
      (SELECT COUNT(*) FROM (SELECT 1 FROM ${claim} WHERE line = v_line AND place >= v_next LIMIT p_max_waiters) AS waiters)`
  const refuseFull = `
  ELSEIF ${isFull} THEN
    SET v_reply = '{"status":"refused","reason":"full"}';`
  return `
  SET v_place = NULL;
  IF v_used > 0 OR v_next IS NOT NULL THEN
    SELECT place, fence, expires INTO v_place, v_fence, v_expires FROM ${claim} WHERE line = v_line AND id = p_id;
  ELSE
    SET v_capacity = p_capacity;
  END IF;
  SET v_most = COALESCE(v_pinned, v_capacity);
  IF v_place IS NOT NULL THEN
    IF v_fence > 0 THEN
      SET v_reply = CONCAT('{"status":"granted","fence":', v_fence, ',"leaseMs":', (v_expires - v_now) / 1000, '}');
    ELSE${findFirst(names)}
      SET v_reply = ${WAITING};
    END IF;
  ELSEIF p_mode = ${MODE.adopt} THEN
    -- The hold may have shrunk since it was exported: its other permits are no longer its own.
    SELECT place, id, client, fence INTO v_place, v_id, v_client, v_fence
      FROM ${claim} WHERE line = v_line AND id = p_old_id AND fence = p_old_fence AND fence > 0 AND permits >= p_permits;
    IF v_place IS NULL THEN
      SET v_reply = '{"status":"refused","reason":"gone"}';
    ELSE${tellLost(names)}${grant}
      UPDATE ${claim} SET id = p_id, client = p_client, fence = v_fence, expires = v_expires, max_hold = p_max_hold,
        floor_fence = p_floor, block = p_block, since = v_now, info = p_info WHERE line = v_line AND place = v_place;
    END IF;
  ELSEIF p_permits > v_most OR (p_capacity <> v_most AND NOT p_capacity <=> v_declared) THEN
    SET v_reply = CONCAT('{"status":"refused","reason":"capacity","capacity":', v_most, '}');
  ELSEIF p_mode = ${MODE.steal} THEN
    WHILE v_used > 0 DO
      SELECT place, id, client, permits, fence INTO v_place, v_id, v_client, v_permits, v_fence
        FROM ${claim} WHERE line = v_line ORDER BY place LIMIT 1;${tellLost(names)}${removeClaim(names)}
    END WHILE;${grant}
    SELECT COALESCE(MIN(place), 1) - 1 INTO v_place FROM ${claim} WHERE line = v_line;${enter('v_fence', 'v_place')}
    SET v_used = p_permits, v_tail = GREATEST(v_tail, v_place);${advanceLine(names)}
  ELSEIF v_next IS NULL AND ${fits('v_used', 'p_permits', 'v_most')} THEN${grant}
    SET v_tail = v_tail + 1, v_used = v_used + p_permits;${enter('v_fence', 'v_tail')}
  ELSEIF p_mode = ${MODE.try} THEN
    SET v_reply = '{"status":"refused","reason":"busy"}';${isBounded ? refuseFull : ''}
  ELSE
    SET v_tail = v_tail + 1, v_place = v_tail, v_expires = v_now + p_presence;
    SET v_next = COALESCE(v_next, v_place), v_soonest = LEAST(v_soonest, v_expires);${enter('0', 'v_place')}${findFirst(names)}
    SET v_reply = ${WAITING};
  END IF;`
}

/** Leaves the line, as holder or as waiter. */
export function leaveLine(names: MysqlNames): string {
  return `
  SET v_place = NULL, v_reply = 'false';
  SELECT place, permits, fence, expires INTO v_place, v_permits, v_fence, v_expires
    FROM ${names.claim} WHERE line = v_line AND id = p_id;
  IF v_place IS NOT NULL THEN${removeClaim(names)}
    IF v_expires > v_now THEN
      SET v_reply = 'true';
    END IF;
  END IF;${advanceLine(names)}`
}
