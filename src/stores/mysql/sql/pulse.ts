import { EXCLUSIVE } from '../../../contract/constants.js'
import {
  ANSWER_WITH_NEWS,
  advanceLine,
  BEGIN,
  closeLine,
  countLine,
  FAR,
  findFirst,
  LINE_VARIABLES,
  makeAlone,
  openLine,
  refuseTooHigh,
  routine,
  takeFence,
  UNDO,
  WAITING,
} from './line.js'
import type { MysqlNames } from './names.js'

/**
 * Renews holds and keeps places, and answers the state of each. `p_lines` are the keys of the
 * lines, in their order and without anything between; `p_beats` is a JSON array with one array of
 * beats for each line: id in hexadecimal, lease, presence, permits, block, and the first and the
 * number of the fences that the beat names. Durations are microseconds. Answers a JSON array with
 * one reply for each beat.
 *
 * The lines are locked in the order of their keys, so that two pulses cannot deadlock.
 */
export function pulseRoutine(names: MysqlNames): string {
  const { claim } = names
  const beats = `JSON_TABLE(v_beats, '$[*]' COLUMNS (number FOR ORDINALITY, id VARCHAR(510) PATH '$[0]', lease BIGINT PATH '$[1]',
      presence BIGINT PATH '$[2]', permits BIGINT PATH '$[3]', block BIGINT PATH '$[4]', first_fence BIGINT PATH '$[5]', size BIGINT PATH '$[6]'))`
  const fetch =
    'FETCH beats INTO v_lease, v_presence, v_wanted, v_block, v_from, v_size, v_place, v_permits, v_fence, v_expires, v_latest;'
  const forEachBeat = (work: string): string => `
      SET v_is_done = FALSE;
      OPEN beats;
      ${fetch}
      WHILE NOT v_is_done DO${work}
        ${fetch}
      END WHILE;
      CLOSE beats;`
  // Since an exclusive claim was granted, no other claim has got a fence of its line.
  const takeFences = `
        IF v_from IS NOT NULL AND v_fence > 0 THEN
          SELECT fence, permits INTO v_fence, v_permits FROM ${claim} WHERE line = v_line AND place = v_place;
          IF v_from > IF(v_permits = ${EXCLUSIVE}, v_fence, v_last) THEN${refuseTooHigh('v_from', 'v_size')}
            UPDATE ${claim} SET fence = v_from, block = GREATEST(block, v_size) WHERE line = v_line AND place = v_place;
            SET v_fence = v_from, v_last = GREATEST(v_last, v_from + v_size - 1);
          END IF;
        END IF;`
  const refresh = `${takeFences}
        SET v_expires = GREATEST(v_expires, IF(v_fence = 0, v_now + v_presence, LEAST(v_now + v_lease, v_latest)));
        SET v_permits = IF(v_fence > 0, LEAST(v_permits, COALESCE(v_wanted, v_permits)), v_permits);
        SET v_has_shrunk = v_has_shrunk OR COALESCE(v_fence > 0 AND v_wanted IS NOT NULL, FALSE);
        IF v_place IS NOT NULL THEN
          -- A claim may have several beats.
          UPDATE ${claim} SET expires = GREATEST(expires, v_expires), permits = LEAST(permits, v_permits)
            WHERE line = v_line AND place = v_place;
          SET v_dirty = TRUE;
        END IF;`
  const answer = `${findFirst(names)}
        SET v_reply = CONCAT(v_reply, IF(v_reply = '', '', ','), CASE
          WHEN v_place IS NULL THEN '{"status":"gone"}'
          WHEN v_fence = 0 THEN ${WAITING}
          ELSE CONCAT('{"status":"held","fence":', v_fence, ',"leaseMs":', (v_expires - v_now) / 1000) END);
        IF v_fence > 0 THEN
          IF v_block IS NOT NULL THEN${takeFence('0', 'v_block')}
            SET v_reply = CONCAT(v_reply, ',"block":', v_fence);
          ELSEIF v_from <> v_fence THEN
            SET v_reply = CONCAT(v_reply, ',"newest":', v_last);
          END IF;
          SET v_reply = CONCAT(v_reply, '}');
        END IF;`
  return routine(
    names,
    'pulse',
    'v_caller VARBINARY(255), p_lines LONGBLOB, p_beats LONGTEXT CHARACTER SET utf8mb4, p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_line BINARY(32);
  DECLARE v_reply, v_beats LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE v_lease, v_presence, v_wanted, v_latest, v_from, v_size BIGINT;
  DECLARE v_number BIGINT DEFAULT 0;
  DECLARE v_is_done, v_is_single, v_has_shrunk BOOLEAN DEFAULT FALSE;
  DECLARE beats CURSOR FOR
    SELECT beat.lease, beat.presence, beat.permits, beat.block, beat.first_fence, beat.size, claim.place, claim.permits, claim.fence, claim.expires,
        COALESCE(claim.since + claim.max_hold, ${FAR})
      FROM ${beats} AS beat LEFT JOIN ${claim} AS claim ON claim.line = v_line AND claim.id = UNHEX(beat.id) ORDER BY beat.number;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_is_done = TRUE;${UNDO}${BEGIN}
  WHILE v_number * 32 < LENGTH(p_lines) DO
    SET v_line = SUBSTRING(p_lines, v_number * 32 + 1, 32), v_beats = JSON_EXTRACT(p_beats, CONCAT('$[', v_number, ']'));
    SET v_number = v_number + 1;${openLine(names)}
    SET v_is_single = v_last IS NOT NULL AND JSON_LENGTH(v_beats) = 1 AND JSON_TYPE(JSON_EXTRACT(v_beats, '$[0][3]')) = 'NULL', v_has_shrunk = FALSE;
    IF v_last IS NOT NULL THEN${advanceLine(names)}
    END IF;
    -- Most lines have one beat that changes nothing for others: it is answered in one loop.
    IF v_is_single THEN${forEachBeat(refresh + answer)}
    ELSE
      IF v_last IS NOT NULL THEN${forEachBeat(refresh)}
        IF v_has_shrunk THEN${countLine(names)}${advanceLine(names)}
        END IF;
      END IF;${forEachBeat(answer)}
    END IF;
    IF v_last IS NOT NULL THEN${closeLine(names)}
      IF v_is_single AND v_dirty AND v_next IS NULL AND v_pinned IS NULL THEN${makeAlone(names)}
      END IF;
    END IF;
  END WHILE;
  COMMIT;
  SET v_reply = CONCAT('[', v_reply, ']');${ANSWER_WITH_NEWS}`,
  )
}
