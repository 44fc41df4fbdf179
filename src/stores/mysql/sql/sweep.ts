import { advanceLine, BEGIN, closeLine, LINE_VARIABLES, openLine, routine, UNDO, WALL } from './line.js'
import type { MysqlNames } from './names.js'

/** The most of each kind at once; the next call removes more. */
export const MOST_SWEPT = 500

/**
 * Removes lapsed claims of unused lines, empty lines, and ended states. Once in `p_every`
 * microseconds, for the first client that asks; 0: at once. Answers how many lines and states it
 * has read or removed. A line and a state stay for `p_keep` after their last number, so that a
 * clock set back by less cannot lower it.
 */
export function sweepRoutine(names: MysqlNames): string {
  const { line, news, state, version } = names
  return routine(
    names,
    'sweep',
    'p_every BIGINT, p_keep BIGINT, p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_line BINARY(32);
  DECLARE v_caller VARBINARY(255) DEFAULT '';
  DECLARE v_is_done BOOLEAN DEFAULT FALSE;
  DECLARE v_is_due, v_count BIGINT DEFAULT 0;
  DECLARE lapsed CURSOR FOR SELECT line FROM ${line} WHERE soonest <= v_wall + shift ORDER BY line LIMIT ${MOST_SWEPT};
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_is_done = TRUE;${UNDO}
  COMMIT;
  SET v_wall = COALESCE(p_at, ${WALL});
  UPDATE ${version} SET swept = v_wall WHERE p_every = 0 OR swept NOT BETWEEN v_wall - p_every AND v_wall;
  SET v_is_due = p_every = 0 OR ROW_COUNT() > 0;
  COMMIT;
  IF v_is_due > 0 THEN
    OPEN lapsed;
    FETCH lapsed INTO v_line;
    WHILE NOT v_is_done DO${BEGIN}${openLine(names)}
      IF v_last IS NOT NULL THEN${advanceLine(names)}${closeLine(names)}
      END IF;
      COMMIT;
      SET v_is_done = FALSE, v_count = v_count + 1;
      FETCH lapsed INTO v_line;
    END WHILE;
    CLOSE lapsed;${BEGIN}
    SET v_wall = COALESCE(p_at, ${WALL});
    DELETE FROM ${line} WHERE used = 0 AND next_place IS NULL AND pinned IS NULL AND GREATEST(last, seen - shift) < v_wall - p_keep
      ORDER BY line LIMIT ${MOST_SWEPT};
    SET v_count = v_count + ROW_COUNT();
    DELETE FROM ${state} WHERE expires < v_wall - p_keep AND last < v_wall - p_keep ORDER BY state LIMIT ${MOST_SWEPT};
    SET v_count = v_count + ROW_COUNT();
    -- News may be made meanwhile. Of the future it is only where the clock was set back.
    DELETE FROM ${news} WHERE at NOT BETWEEN v_wall - p_keep AND v_wall + p_keep;
    COMMIT;
  END IF;
  SELECT CONCAT('{"reply":', v_count, ',"news":[', v_news, ']}') AS answer;`,
  )
}
