import { BOUNDED_VALUES, CLAIM_VALUES, joinLine, leaveLine, MODE, makeLine } from './claim.js'
import {
  ANSWER_WITH_NEWS,
  advanceLine,
  BEGIN,
  closeLine,
  LINE_VARIABLES,
  openLine,
  routine,
  UNDO,
} from './line.js'
import type { MysqlNames } from './names.js'

const REPLY = `
  DECLARE v_most BIGINT;
  DECLARE v_reply LONGTEXT CHARACTER SET utf8mb4;`

/** One claim. `p_at` is the time, for tests; null: the server's clock. */
export function joinRoutine(names: MysqlNames): string {
  const values = CLAIM_VALUES.map(([name, type]) => `${name} ${type}`).join(', ')
  return routine(
    names,
    'join',
    `v_line BINARY(32), v_caller VARBINARY(255), p_space BLOB, p_resource BLOB, ${values}, p_at BIGINT`,
    `${LINE_VARIABLES}${REPLY}${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NULL THEN${makeLine(names)}
  END IF;${advanceLine(names)}${joinLine(names)}${closeLine(names)}
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}

/** One release. */
export function leaveRoutine(names: MysqlNames): string {
  return routine(
    names,
    'leave',
    'v_line BINARY(32), v_caller VARBINARY(255), p_id VARBINARY(255), p_at BIGINT',
    `${LINE_VARIABLES}
  DECLARE v_reply VARCHAR(8) CHARACTER SET utf8mb4 DEFAULT 'false';${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${leaveLine(names)}${closeLine(names)}
  END IF;
  COMMIT;${ANSWER_WITH_NEWS}`,
  )
}

/**
 * Several claims and releases of one line, in their order. `p_calls` is a JSON array with an array
 * for each: the values of a claim, bytes in hexadecimal; of a release just the mode and the id.
 * Answers a JSON array of their replies.
 */
export function callsRoutine(names: MysqlNames): string {
  return severalRoutine(names, 'calls', CLAIM_VALUES)
}

/**
 * The same for calls of which some are bounded. It came after the first schema, and clients that do
 * not know it need nothing else: so it has no version of its own.
 */
export function boundedCallsRoutine(names: MysqlNames): string {
  return severalRoutine(names, 'bounded_calls', BOUNDED_VALUES)
}

function severalRoutine(names: MysqlNames, name: string, claimValues: typeof CLAIM_VALUES): string {
  const variables = claimValues.map(([name, type]) => `\n  DECLARE ${name} ${type};`).join('')
  const columns = claimValues.map(
    ([name, type], index) => `${name.slice(2)} ${textType(type)} PATH '$[${index}]'`,
  )
  const values = claimValues.map(([name, type]) =>
    type.startsWith('VARBINARY') ? `UNHEX(calls.${name.slice(2)})` : `calls.${name.slice(2)}`,
  )
  const fetch = `
    -- A SELECT without a row has set it, too.
    SET v_is_done = FALSE;
    FETCH calls INTO ${claimValues.map(([name]) => name).join(', ')};`
  return routine(
    names,
    name,
    'v_line BINARY(32), v_caller VARBINARY(255), p_space BLOB, p_resource BLOB, p_calls LONGTEXT CHARACTER SET utf8mb4, p_at BIGINT',
    `${LINE_VARIABLES}${REPLY}${variables}
  DECLARE v_replies LONGTEXT CHARACTER SET utf8mb4 DEFAULT '';
  DECLARE v_is_done BOOLEAN;
  DECLARE calls CURSOR FOR SELECT ${values.join(', ')}
    FROM JSON_TABLE(p_calls, '$[*]' COLUMNS (number FOR ORDINALITY, ${columns.join(', ')})) AS calls ORDER BY calls.number;
  DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_is_done = TRUE;${UNDO}${BEGIN}${openLine(names)}
  IF v_last IS NOT NULL THEN${advanceLine(names)}
  END IF;
  OPEN calls;${fetch}
  WHILE NOT v_is_done DO
    IF p_mode <> ${MODE.release} THEN
      -- MariaDB 10.11 forgets the values of UNHEX(LONGTEXT) in a cursor.
      SET p_info = UNHEX(p_info);
      IF v_last IS NULL THEN${makeLine(names)}
      END IF;${joinLine(names, claimValues === BOUNDED_VALUES)}
    ELSEIF v_last IS NULL THEN
      SET v_reply = 'false';
    ELSE${leaveLine(names)}
    END IF;
    SET v_replies = CONCAT(v_replies, IF(v_replies = '', '', ','), v_reply);${fetch}
  END WHILE;
  CLOSE calls;
  IF v_last IS NOT NULL THEN${closeLine(names)}
  END IF;
  COMMIT;
  SET v_reply = CONCAT('[', v_replies, ']');${ANSWER_WITH_NEWS}`,
  )
}

/** Bytes travel in hexadecimal. */
function textType(type: string): string {
  if (type === 'LONGBLOB') return 'LONGTEXT'
  return type.startsWith('VARBINARY') ? 'VARCHAR(510)' : type
}
