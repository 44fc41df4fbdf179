import { routine, WALL } from './line.js'
import type { Names } from './names.js'

/**
 * Takes a lock of the session if it is free, and counts: answers the fence, or 0 if another session has it. Never asks for a lock that this session may have already: that
 * would be granted a second time. Whoever has the lock is the only one at its counter, so fences grow in the order of the grants.
 */
export function sessionLockRoutine(names: Names): string {
  return routine(
    names,
    'session_lock',
    'p_lock VARCHAR(64) CHARACTER SET utf8mb4, p_hash BINARY(32), p_name BLOB',
    `
  DECLARE v_fence BIGINT DEFAULT 0;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; DO RELEASE_LOCK(p_lock); RESIGNAL; END;
  IF IS_FREE_LOCK(p_lock) AND GET_LOCK(p_lock, 0) THEN
    ${countSessionLock(names, 'p_hash, p_name')};
    SET v_fence = LAST_INSERT_ID();
    COMMIT;
  END IF;
  SELECT v_fence AS answer;`,
  )
}

/** Counts a lock that this session has; the fence is its LAST_INSERT_ID. `counter`: the hash and the name. */
export function countSessionLock({ sessionLock }: Names, counter: string): string {
  return `INSERT INTO ${sessionLock} (name_hash, name, fence) VALUES (${counter}, LAST_INSERT_ID(${WALL}))
      ON DUPLICATE KEY UPDATE fence = LAST_INSERT_ID(GREATEST(fence + 1, VALUES(fence)))`
}
