import { CLAIM_VALUES, joinLine, leaveLine, MODE, makeLine } from './claim.js'
import {
  ANSWER_WITH_NEWS,
  BEGIN,
  closeLine,
  LINE_VARIABLES,
  openLine,
  routine,
  settle,
  UNDO,
} from './line.js'
import type { Names } from './names.js'

const REPLY = `
  DECLARE v_most BIGINT;
  DECLARE v_reply LONGTEXT CHARACTER SET utf8mb4;`

/** One claim. `p_at` is the time, for tests; null: the server's clock. */
export function claimRoutine(names: Names): string {
  const values = CLAIM_VALUES.map(([name, type]) => `${name} ${type}`).join(', ')
  return routine(
    names,
    'claim',
    `v_line BINARY(32), p_space BLOB, p_resource BLOB, ${values}, p_at BIGINT`,
    `${LINE_VARIABLES}${REPLY}${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NULL THEN${makeLine(names)}
  END IF;${settle(names)}${joinLine(names)}${closeLine(names)}
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}

export function releaseRoutine(names: Names): string {
  return routine(
    names,
    'release',
    'v_line BINARY(32), p_id VARBINARY(255), p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_reply VARCHAR(8) CHARACTER SET utf8mb4 DEFAULT 'false';${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${leaveLine(names)}${closeLine(names)}
  END IF;
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}

/**
 * Several claims and releases of one line, in their order. `p_calls` is a JSON array with an array for each: the values of a claim, bytes in hexadecimal and
 * null as ''; of a release just the mode and the id. Answers a JSON array of their replies.
 */
export function turnRoutine(names: Names): string {
  const variables = CLAIM_VALUES.map(([name, type]) => `\n  DECLARE ${name} ${type};`).join('')
  const values = CLAIM_VALUES.map(([name, type], index) => {
    const text = `JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[${index}]'))`
    return `${name} = ${type.endsWith('INT') ? `NULLIF(${text}, '')` : `UNHEX(${text})`}`
  })
  return routine(
    names,
    'turn',
    'v_line BINARY(32), p_space BLOB, p_resource BLOB, p_calls LONGTEXT CHARACTER SET utf8mb4, p_at BIGINT',
    `${LINE_VARIABLES}${REPLY}${variables}
  DECLARE v_call, v_replies LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE v_number, v_count BIGINT DEFAULT 0;${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${settle(names)}
  END IF;
  SET v_count = JSON_LENGTH(p_calls);
  WHILE v_number < v_count DO
    SET v_call = JSON_EXTRACT(p_calls, CONCAT('$[', v_number, ']')), v_number = v_number + 1;
    SET p_mode = JSON_EXTRACT(v_call, '$[0]'), p_id = UNHEX(JSON_UNQUOTE(JSON_EXTRACT(v_call, '$[1]')));
    IF p_mode = ${MODE.release} THEN
      SET v_reply = 'false';
      IF v_last IS NOT NULL THEN${leaveLine(names)}
      END IF;
    ELSE
      SET ${values.slice(2).join(',\n        ')};
      IF v_last IS NULL THEN${makeLine(names)}
      END IF;${joinLine(names)}
    END IF;
    SET v_replies = CONCAT(v_replies, IF(v_replies = '', '', ','), v_reply);
  END WHILE;
  IF v_last IS NOT NULL THEN${closeLine(names)}
  END IF;
  COMMIT;
  SET v_reply = CONCAT('[', v_replies, ']');${ANSWER_WITH_NEWS}`,
  )
}
