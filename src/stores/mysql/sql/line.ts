import { HIGHEST_FENCE } from '../../../contract/constants.js'
import { FENCE_LIMIT } from '../../shared/failures.js'
import { fits, isFenceTooHigh, nextFence } from '../../shared/sql.js'
import type { MysqlNames } from './names.js'

/**
 * The line semantics of the embedded stores, restated in SQL and checked against the same model.
 * Every routine that touches a line is composed of these pieces, which work on the variables of
 * `LINE_VARIABLES`.
 *
 * - The row of the line is its lock: nothing of a line is read or changed before `openLine`.
 * - Holds have the places before `v_next`, waiters the places from it on: the primary key finds
 *   both.
 * - `v_soonest` is never later than the first deadline in the line. Lapsed claims are searched only
 *   when it has come, so a line of thousands costs as much as a short one.
 * - The row is written once, by `closeLine`, and only if something has changed.
 * - A hold that is alone is kept in the row itself (`sql/alone.ts`); `openLine` makes it a claim
 *   like any other.
 */

/** Later than any time of a line. */
export const FAR = HIGHEST_FENCE

/**
 * Microseconds since 1970. SYSDATE is the present time, not that of the beginning of the statement,
 * in the session's time zone; the other two give its distance from UTC.
 */
export const WALL = `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6)) - TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), NOW(6))`

export const LINE_VARIABLES = `
  DECLARE v_wall, v_now, v_last, v_seen, v_shift, v_used, v_soonest, v_next, v_tail, v_capacity, v_declared, v_pinned BIGINT;
  DECLARE v_fence, v_place, v_permits, v_floor, v_block, v_max_hold, v_expires, v_first, v_stay BIGINT;
  DECLARE v_id, v_client VARBINARY(255);
  DECLARE v_dirty, v_is_alone BOOLEAN DEFAULT FALSE;
  DECLARE v_news LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';`

/** A failure rolls the whole call back. */
export const UNDO = `
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;`

/**
 * READ COMMITTED takes no gap locks, and a read after the lock of the line sees the newest rows.
 */
export const BEGIN = `
  COMMIT;
  SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
  START TRANSACTION;`

/**
 * Locks the line `v_line`, and reads the clock after that. `v_last` null: there is no such line.
 */
export function openLine({ line, claim }: MysqlNames): string {
  return `
  SET v_last = NULL, v_is_alone = FALSE;
  SELECT last, seen, shift, used, soonest, next_place, last_place, capacity, declared, pinned, is_alone
    INTO v_last, v_seen, v_shift, v_used, v_soonest, v_next, v_tail, v_capacity, v_declared, v_pinned, v_is_alone
    FROM ${line} WHERE line = v_line FOR UPDATE;
  SET v_wall = COALESCE(p_at, ${WALL});
  SET v_now = v_wall + COALESCE(v_shift, 0), v_dirty = FALSE;
  IF v_now < v_seen THEN
    SET v_shift = v_seen - v_wall, v_now = v_seen;
  END IF;
  IF v_is_alone THEN
    SET v_tail = v_tail + 1, v_dirty = TRUE;
    INSERT INTO ${claim} (line, place, id, client, permits, capacity, fence, expires, max_hold, floor_fence, block, since, info)
      SELECT line, v_tail, alone_id, alone_client, used, capacity, last - alone_block + 1, soonest, NULL, 0, alone_block, alone_since, alone_info FROM ${line} WHERE line = v_line;
  END IF;`
}

export function closeLine({ line }: MysqlNames): string {
  return `
  IF v_dirty THEN
    UPDATE ${line} SET last = v_last, seen = v_now, shift = v_shift, used = v_used, soonest = v_soonest, next_place = v_next,
      last_place = v_tail, capacity = v_capacity, declared = v_declared, pinned = v_pinned, is_alone = 0 WHERE line = v_line;
  END IF;`
}

/** Moves the hold at `v_place` into the row of the line, if it is alone and has no `maxHold`. */
export function makeAlone({ line, claim }: MysqlNames): string {
  return `
  UPDATE ${line} AS line JOIN ${claim} AS claim ON claim.line = line.line SET line.is_alone = 1, line.soonest = claim.expires,
      line.alone_block = claim.block, line.alone_since = claim.since, line.alone_id = claim.id, line.alone_client = claim.client,
      line.alone_info = claim.info
    WHERE line.line = v_line AND claim.place = v_place AND claim.fence > 0 AND claim.max_hold IS NULL
      AND claim.permits = line.used AND claim.fence + claim.block - 1 = line.last;
  IF ROW_COUNT() > 0 THEN
    DELETE FROM ${claim} WHERE line = v_line AND place = v_place;
  END IF;`
}

/** The next fence, into `v_fence`. */
export function takeFence(floor: string, block: string): string {
  return `
  SET v_fence = ${nextFence('v_last', floor, 'v_wall')};${refuseTooHigh('v_fence', block)}
  SET v_last = v_fence + ${block} - 1, v_dirty = TRUE;`
}

/** Fails if no such block of fences is left. */
export function refuseTooHigh(fence: string, block: string): string {
  return `
  IF ${isFenceTooHigh(fence, block)} THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = '${FENCE_LIMIT}';
  END IF;`
}

/**
 * News for the client of the claim at `v_place`: in the answer and, unless it calls, in a table.
 */
function tell({ news }: MysqlNames, what: 'granted' | 'lost'): string {
  return `
  SET v_news = CONCAT(v_news, IF(v_news = '', '', ','),
    '["${what}","', HEX(v_line), '","', HEX(v_client), '","', HEX(v_id), '",', v_fence, ']');
  IF v_client <> v_caller THEN
    SET v_stay = IF(v_fence = 0, -v_place, v_fence);
    INSERT INTO ${news} (client, at, line, id, what, fence) VALUES (v_client, v_wall, v_line, v_id, '${what}', v_stay)
      ON DUPLICATE KEY UPDATE what = '${what}', fence = v_stay;
  END IF;`
}

/** The claim is revoked. */
export function tellLost(names: MysqlNames): string {
  return tell(names, 'lost')
}

/** Sums up the claims of the line. */
export function countLine({ claim }: MysqlNames): string {
  return `
  SELECT COALESCE(SUM(IF(fence = 0, 0, permits)), 0), COALESCE(MIN(expires), ${FAR}), MIN(IF(fence = 0, place, NULL))
    INTO v_used, v_soonest, v_next FROM ${claim} WHERE line = v_line;
  SET v_dirty = TRUE;`
}

/** Removes the claim at `v_place`, whose permits and fence are in `v_permits` and `v_fence`. */
export function removeClaim({ claim }: MysqlNames): string {
  return `
  DELETE FROM ${claim} WHERE line = v_line AND place = v_place;
  IF v_fence > 0 THEN
    SET v_used = v_used - v_permits;
  ELSEIF v_place = v_next THEN
    SELECT MIN(place) INTO v_next FROM ${claim} WHERE line = v_line AND place > v_place;
  END IF;
  IF v_used = 0 AND v_next IS NULL THEN
    SET v_soonest = ${FAR};
  END IF;
  SET v_dirty = TRUE;`
}

/** Drops lapsed claims, and promotes: the holds are the longest prefix of the line that fits. */
export function advanceLine(names: MysqlNames): string {
  const { claim } = names
  return `
  IF v_soonest <= v_now THEN
    DELETE FROM ${claim} WHERE line = v_line AND expires <= v_now;${countLine(names)}
  END IF;
  SET v_place = v_next;
  -- Where all permits are taken, the next claim need not be read.
  WHILE v_place IS NOT NULL AND v_used < COALESCE(v_pinned, v_capacity) DO
    SELECT permits, floor_fence, block, max_hold, expires, id, client
      INTO v_permits, v_floor, v_block, v_max_hold, v_expires, v_id, v_client
      FROM ${claim} WHERE line = v_line AND place = v_place;
    IF NOT ${fits('v_used', 'v_permits', 'COALESCE(v_pinned, v_capacity)')} THEN
      SET v_place = NULL;
    ELSE${takeFence('v_floor', 'v_block')}
      -- The waiter's deadline stays: its next pulse proves that it lives, and starts the lease.
      SET v_expires = LEAST(v_expires, COALESCE(v_now + v_max_hold, ${FAR}));
      UPDATE ${claim} SET fence = v_fence, since = v_now, expires = v_expires
        WHERE line = v_line AND place = v_place;
      SET v_used = v_used + v_permits, v_soonest = LEAST(v_soonest, v_expires);${tell(names, 'granted')}
      SELECT MIN(place) INTO v_next FROM ${claim} WHERE line = v_line AND place > v_place;
      SET v_place = v_next;
    END IF;
  END WHILE;`
}

/** The answer for a claim that waits at `v_place`; `v_first` is when the first hold lapses. */
export const WAITING = `CONCAT('{"status":"waiting","presenceMs":', (v_expires - v_now) / 1000,
    ',"isNext":', IF(v_place = v_next, 'true', 'false'),
    ',"freeInMs":', IF(v_place = v_next, COALESCE((v_first - v_now) / 1000, 'null'), 'null'),
    ',"grantsAbove":', v_last, ',"place":', v_place, ',"nextPlace":', v_next, '}')`

/** Only the next in line needs to know. */
export function findFirst({ claim }: MysqlNames): string {
  return `
  IF v_place = v_next THEN
    SELECT MIN(expires) INTO v_first FROM ${claim} WHERE line = v_line AND place < v_next;
  END IF;`
}

export const ANSWER_WITH_NEWS = `
  SELECT CONCAT('{"reply":', v_reply, ',"news":[', v_news, ']}') AS answer;`

/** A routine. `SQL SECURITY INVOKER`: it has the caller's rights, not its creator's. */
export function routine(names: MysqlNames, name: string, parameters: string, body: string): string {
  return `CREATE PROCEDURE ${names.routine(name)} (${parameters})
  MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN${body}
END`
}
