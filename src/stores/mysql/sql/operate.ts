import { makeLine } from './claim.js'
import {
  ANSWER_WITH_NEWS,
  advanceLine,
  BEGIN,
  closeLine,
  LINE_VARIABLES,
  openLine,
  removeClaim,
  routine,
  tellLost,
  UNDO,
} from './line.js'
import type { MysqlNames } from './names.js'
import { CLAIM, viewOf } from './view.js'

/** Revokes the hold with a fence, or every hold (`p_fence` null). Answers the revoked holds. */
export function evictRoutine(names: MysqlNames): string {
  const { claim } = names
  return routine(
    names,
    'evict',
    'v_line BINARY(32), v_caller VARBINARY(255), p_fence BIGINT, p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_reply LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE v_view LONGTEXT CHARACTER SET utf8mb4;${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${advanceLine(names)}
    SELECT MIN(place) INTO v_place FROM ${claim} WHERE line = v_line AND fence > 0 AND fence = COALESCE(p_fence, fence);
    WHILE v_place IS NOT NULL DO
      SELECT id, client, permits, fence, ${viewOf(CLAIM, 'v_now')} INTO v_id, v_client, v_permits, v_fence, v_view
        FROM ${claim} AS claim WHERE line = v_line AND place = v_place;
      SET v_reply = CONCAT(v_reply, IF(v_reply = '', '', ','), v_view);${tellLost(names)}${removeClaim(names)}
      SELECT MIN(place) INTO v_place FROM ${claim} WHERE line = v_line AND fence > 0 AND fence = COALESCE(p_fence, fence);
    END WHILE;${advanceLine(names)}${closeLine(names)}
  END IF;
  COMMIT;
  SET v_reply = CONCAT('[', v_reply, ']');${ANSWER_WITH_NEWS}`,
  )
}

/** Removes the waiting claim with an id. Answers it, if it was there. */
export function cancelRoutine(names: MysqlNames): string {
  const { claim } = names
  return routine(
    names,
    'cancel',
    'v_line BINARY(32), v_caller VARBINARY(255), p_id VARBINARY(255), p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_reply LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${advanceLine(names)}
    SELECT MIN(place) INTO v_place FROM ${claim} WHERE line = v_line AND id = p_id AND fence = 0 AND expires > v_now;
    IF v_place IS NOT NULL THEN
      SELECT id, client, permits, fence, ${viewOf(CLAIM, 'v_now')} INTO v_id, v_client, v_permits, v_fence, v_reply
        FROM ${claim} AS claim WHERE line = v_line AND place = v_place;${tellLost(names)}${removeClaim(names)}
    END IF;${advanceLine(names)}${closeLine(names)}
  END IF;
  COMMIT;
  SET v_reply = CONCAT('[', v_reply, ']');${ANSWER_WITH_NEWS}`,
  )
}

/** Pins the capacity of a counting resource. */
export function resizeRoutine(names: MysqlNames): string {
  const { claim } = names
  return routine(
    names,
    'resize',
    'v_line BINARY(32), v_caller VARBINARY(255), p_space BLOB, p_resource BLOB, p_declared BIGINT, p_capacity BIGINT, p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_others BIGINT;
  DECLARE v_reply VARCHAR(8) CHARACTER SET utf8mb4 DEFAULT 'null';${UNDO}${BEGIN}${makeLine(names)}${advanceLine(names)}
  SELECT COUNT(*) INTO v_others FROM ${claim} WHERE line = v_line AND capacity <> p_capacity;
  -- Once all claims of the line declare it, there is nothing to remember.
  IF p_declared = p_capacity AND v_others = 0 THEN
    SET v_declared = NULL, v_pinned = NULL, v_capacity = p_capacity;
  ELSE
    SET v_declared = p_declared, v_pinned = p_capacity;
  END IF;
  SET v_dirty = TRUE;
  -- A waiter that wants more than the capacity would block the line for ever.
  SELECT MIN(place) INTO v_place FROM ${claim} WHERE line = v_line AND fence = 0 AND permits > p_capacity;
  WHILE v_place IS NOT NULL DO
    SELECT id, client, permits, fence INTO v_id, v_client, v_permits, v_fence FROM ${claim} WHERE line = v_line AND place = v_place;${tellLost(names)}${removeClaim(names)}
    SELECT MIN(place) INTO v_place FROM ${claim} WHERE line = v_line AND fence = 0 AND permits > p_capacity;
  END WHILE;${advanceLine(names)}${closeLine(names)}
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}
