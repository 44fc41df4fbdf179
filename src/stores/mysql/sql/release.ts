import {
  ANSWER_WITH_NEWS,
  BEGIN,
  closeLine,
  LINE_VARIABLES,
  openLine,
  removeClaim,
  routine,
  settle,
  UNDO,
} from './line.js'
import type { Names } from './names.js'

/** Leaves the line, as holder or as waiter. */
export function releaseRoutine(names: Names): string {
  const { claim } = names
  return routine(
    names,
    'release',
    'v_line BINARY(32), p_id VARBINARY(255), p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_reply VARCHAR(8) CHARACTER SET utf8mb4 DEFAULT 'false';${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN
    SELECT place, permits, fence, expires INTO v_place, v_permits, v_fence, v_expires
      FROM ${claim} WHERE line = v_line AND id = p_id;
    IF v_place IS NOT NULL THEN${removeClaim(names)}
      IF v_expires > v_now THEN
        SET v_reply = 'true';
      END IF;
    END IF;${settle(names)}${closeLine(names)}
  END IF;
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}
