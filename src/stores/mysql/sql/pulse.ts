import {
  ANSWER_WITH_NEWS,
  BEGIN,
  closeLine,
  FAR,
  findFirst,
  LINE_VARIABLES,
  openLine,
  routine,
  settle,
  takeFence,
  UNDO,
  WAITING,
} from './line.js'
import type { Names } from './names.js'

/**
 * Renews holds and keeps places, and tells what became of each. `p_lines` are the keys of the lines, in their order and without anything between;
 * `p_beats` a JSON array with one array of beats for each of them: id in hexadecimal, lease, presence, permits, block. Durations are microseconds.
 * Answers a JSON array with one reply for each beat, in the order of the beats.
 *
 * The lines are locked in the order of their keys, so that no two pulses can wait for each other.
 */
export function pulseRoutine(names: Names): string {
  const { claim } = names
  const beats = `JSON_TABLE(v_beats, '$[*]' COLUMNS (number FOR ORDINALITY, id VARCHAR(510) PATH '$[0]', lease BIGINT PATH '$[1]',
      presence BIGINT PATH '$[2]', permits BIGINT PATH '$[3]', block BIGINT PATH '$[4]'))`
  // An UPDATE changes each row once, also where a claim has several beats.
  const refreshed = `(SELECT UNHEX(id) AS id, MAX(lease) AS lease, MAX(presence) AS presence, MIN(permits) AS permits FROM ${beats} AS each_beat
          GROUP BY id) AS beat JOIN ${claim} AS claim ON claim.line = v_line AND claim.id = beat.id`
  return routine(
    names,
    'pulse',
    'p_lines LONGBLOB, p_beats LONGTEXT CHARACTER SET utf8mb4, p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_line BINARY(32);
  DECLARE v_reply, v_beats LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE v_number, v_shrunk, v_wanted BIGINT DEFAULT 0;
  DECLARE v_is_done BOOLEAN;
  DECLARE answers CURSOR FOR
    SELECT beat.block, claim.place, claim.fence, claim.expires FROM ${beats} AS beat
      LEFT JOIN ${claim} AS claim ON claim.line = v_line AND claim.id = UNHEX(beat.id) ORDER BY beat.number;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_is_done = TRUE;${UNDO}${BEGIN}
  WHILE v_number * 32 < LENGTH(p_lines) DO
    SET v_line = SUBSTRING(p_lines, v_number * 32 + 1, 32), v_beats = JSON_EXTRACT(p_beats, CONCAT('$[', v_number, ']'));
    SET v_number = v_number + 1;${openLine(names)}
    IF v_last IS NOT NULL THEN${settle(names)}
      SELECT SUM(claim.permits - beat.permits) INTO v_shrunk FROM ${refreshed}
        WHERE claim.fence > 0 AND claim.permits > beat.permits;
      UPDATE ${refreshed}
        SET claim.expires = GREATEST(claim.expires,
            IF(claim.fence = 0, v_now + beat.presence, LEAST(v_now + beat.lease, COALESCE(claim.since + claim.max_hold, ${FAR})))),
          claim.permits = IF(claim.fence = 0, claim.permits, LEAST(claim.permits, COALESCE(beat.permits, claim.permits)));
      SET v_dirty = v_dirty OR ROW_COUNT() > 0;
      IF v_shrunk > 0 THEN
        SET v_used = v_used - v_shrunk;${settle(names)}
      END IF;
      SET v_place = v_next;${findFirst(names)}
    END IF;
    SET v_is_done = FALSE;
    OPEN answers;
    FETCH answers INTO v_wanted, v_place, v_fence, v_expires;
    WHILE NOT v_is_done DO
      SET v_reply = CONCAT(v_reply, IF(v_reply = '', '', ','), CASE
        WHEN v_place IS NULL THEN '{"status":"gone"}'
        WHEN v_fence = 0 THEN ${WAITING}
        ELSE CONCAT('{"status":"held","fence":', v_fence, ',"leaseMs":', (v_expires - v_now) / 1000) END);
      IF v_fence > 0 THEN
        IF v_wanted IS NOT NULL THEN${takeFence('0', 'v_wanted')}
          SET v_reply = CONCAT(v_reply, ',"block":', v_fence);
        END IF;
        SET v_reply = CONCAT(v_reply, '}');
      END IF;
      FETCH answers INTO v_wanted, v_place, v_fence, v_expires;
    END WHILE;
    CLOSE answers;
    IF v_last IS NOT NULL THEN${closeLine(names)}
    END IF;
  END WHILE;
  COMMIT;
  SET v_reply = CONCAT('[', v_reply, ']');${ANSWER_WITH_NEWS}`,
  )
}
