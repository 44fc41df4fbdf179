import { routine, WALL } from './line.js'
import type { MysqlNames } from './names.js'

/**
 * Takes a session lock if it is free, and counts: answers the fence, or 0 if another session holds
 * it. The caller must not hold the lock already: the server would grant it a second time. Only the
 * holder writes the counter, so fences grow in the order of the grants.
 */
export function sessionLockRoutine(names: MysqlNames): string {
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

/** Counts a lock of this session. The fence is LAST_INSERT_ID; `counter` is hash and name. */
export function countSessionLock({ sessionLock }: MysqlNames, counter: string): string {
  return `INSERT INTO ${sessionLock} (name_hash, name, fence) VALUES (${counter}, LAST_INSERT_ID(${WALL}))
      ON DUPLICATE KEY UPDATE fence = LAST_INSERT_ID(GREATEST(fence + 1, VALUES(fence)))`
}
