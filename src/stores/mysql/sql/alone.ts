import { CLAIM_VALUES } from './claim.js'
import { FAR, routine, SKEW_US } from './line.js'
import type { Names } from './names.js'

/**
 * Most locks are free when they are asked for, and nobody else has asked when they are given back. Then the hold is kept in the row of the line, and each call is one UPDATE.
 * Its permits are the line's `used`, its fence is `last`, its deadline `soonest`, and `seen` is when it was granted. Everything else needs the line as a whole: `openLine`.
 */

/** The line's clock goes on; a clock of the server that was set back does not count. Assignments are made from left to right. */
const TICK = 'shift = GREATEST(shift, seen - v_wall), seen = v_wall + shift'

/** When the statement began: a lock that starts a moment too early ends a moment too early, which its client expects anyway. */
const WALL = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"

/** A claim by `try` or `queue`, for one fence and without a cap. `join` is asked where the line is not empty. */
export const SIMPLE_VALUES = [
  'p_mode',
  'p_id',
  'p_client',
  'p_permits',
  'p_capacity',
  'p_lease',
  'p_presence',
  'p_floor',
  'p_info',
]

export function claimRoutine(names: Names): string {
  const isSimple = ([name]: readonly [string, string]): boolean => SIMPLE_VALUES.includes(name)
  const values = CLAIM_VALUES.filter(isSimple).map(([name, type]) => `${name} ${type}`)
  const args = CLAIM_VALUES.map((value) =>
    isSimple(value) ? value[0] : value[0] === 'p_block' ? '1' : 'NULL',
  )
  return routine(
    names,
    'claim',
    `v_line BINARY(32), p_space BLOB, p_resource BLOB, ${values.join(', ')}, p_at BIGINT`,
    `
  DECLARE v_wall BIGINT DEFAULT COALESCE(p_at, ${WALL});
  DECLARE v_count BIGINT DEFAULT 0;
  IF p_permits <= p_capacity AND v_wall < ${FAR} - ${SKEW_US} THEN
    UPDATE ${names.line} SET ${TICK}, last = LAST_INSERT_ID(GREATEST(last + 1, LEAST(p_floor + 1, v_wall + ${SKEW_US}), v_wall)),
        used = p_permits, soonest = seen + p_lease, capacity = p_capacity, alone_id = p_id, alone_client = p_client, alone_info = p_info
      WHERE line = v_line AND used = 0 AND next_place IS NULL AND pinned IS NULL AND last < ${FAR};
    SET v_count = ROW_COUNT();
    COMMIT;
  END IF;
  IF v_count = 1 THEN
    SELECT CONCAT('{"reply":{"status":"granted","fence":', LAST_INSERT_ID(), ',"leaseMs":', p_lease / 1000, '},"news":[]}') AS answer;
  ELSE
    CALL ${names.routine('join')}(v_line, p_client, p_space, p_resource, ${args.join(', ')}, p_at);
  END IF;`,
  )
}

/** Arguments are the same as those of `leave`. */
export function releaseRoutine(names: Names): string {
  return routine(
    names,
    'release',
    'v_line BINARY(32), v_caller VARBINARY(255), p_id VARBINARY(255), p_at BIGINT',
    `
  DECLARE v_wall BIGINT DEFAULT COALESCE(p_at, ${WALL});
  DECLARE v_count BIGINT DEFAULT 0;
  UPDATE ${names.line} SET ${TICK}, used = 0, soonest = ${FAR}, alone_id = NULL
    WHERE line = v_line AND alone_id = p_id AND soonest > GREATEST(v_wall + shift, seen);
  SET v_count = ROW_COUNT();
  COMMIT;
  IF v_count = 1 THEN
    SELECT '{"reply":true,"news":[]}' AS answer;
  ELSE
    CALL ${names.routine('leave')}(v_line, v_caller, p_id, p_at);
  END IF;`,
  )
}
