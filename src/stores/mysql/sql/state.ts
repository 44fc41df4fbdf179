import { BEGIN, routine, UNDO, WALL } from './line.js'
import type { MysqlNames } from './names.js'

/** Answers the number of the newest change (0: none), the version (0: no value), and the value. */
export function readRoutine(names: MysqlNames): string {
  return routine(
    names,
    'read',
    'p_state BINARY(32), p_at BIGINT',
    `
  SELECT CONCAT('[', last, ',', IF(expires <= COALESCE(p_at, ${WALL}), 0, version), ',"', HEX(value), '"]') AS answer
    FROM ${names.state} WHERE state = p_state;`,
  )
}

/**
 * The states of a space whose names begin with `p_prefix`, in the order of their names after
 * `p_after`: name, version (0: no value any more) and value.
 */
export function statesRoutine(names: MysqlNames): string {
  return routine(
    names,
    'states',
    'p_space BLOB, p_prefix BLOB, p_after BLOB, p_most INT, p_at BIGINT',
    `
  SELECT CONCAT('["', HEX(name), '",', IF(expires <= COALESCE(p_at, ${WALL}), 0, version), ',"', HEX(value), '"]') AS answer
    FROM ${names.state} WHERE space = p_space AND name > p_after AND LEFT(name, LENGTH(p_prefix)) = p_prefix
    ORDER BY name LIMIT p_most;`,
  )
}

/**
 * Compare-and-set of a state. `p_expect` null: there must be none. `p_value` null deletes.
 * `p_keep`: how many microseconds it is kept; null: until it is deleted. A deleted state keeps the
 * number of its change for a while, so that no version comes twice. Answers whether it was written,
 * whether that has changed anything, and the present version (0: there is no value) and value.
 */
export function writeRoutine(names: MysqlNames): string {
  const { state } = names
  return routine(
    names,
    'write',
    'p_state BINARY(32), p_space BLOB, p_name BLOB, p_expect BIGINT, p_value LONGBLOB, p_keep BIGINT, p_at BIGINT',
    `
  DECLARE v_wall, v_last, v_version, v_expires BIGINT DEFAULT 0;
  DECLARE v_value LONGBLOB;
  DECLARE v_is_written, v_has_changed VARCHAR(5) CHARACTER SET utf8mb4 DEFAULT 'false';${UNDO}${BEGIN}
  -- Locks the row in the same step, whether it is new or not.
  INSERT INTO ${state} (state, space, name, value, version, last, expires) VALUES (p_state, p_space, p_name, '', 0, 0, 0)
    ON DUPLICATE KEY UPDATE last = last;
  SELECT last, version, value, expires INTO v_last, v_version, v_value, v_expires FROM ${state} WHERE state = p_state FOR UPDATE;
  SET v_wall = COALESCE(p_at, ${WALL});
  IF v_expires <= v_wall THEN
    SET v_version = 0, v_value = '';
  END IF;
  IF v_version = COALESCE(p_expect, 0) THEN
    SET v_is_written = 'true';
    -- Deleting a missing value changes nothing, so no client is told.
    IF p_value IS NOT NULL OR v_version > 0 THEN
      SET v_has_changed = 'true';
      SET v_last = GREATEST(v_last + 1, v_wall), v_value = COALESCE(p_value, ''), v_version = IF(p_value IS NULL, 0, v_last);
      UPDATE ${state} SET value = v_value, version = v_version, last = v_last, expires = IF(p_value IS NULL, v_wall, v_wall + p_keep)
        WHERE state = p_state;
    END IF;
  END IF;
  COMMIT;
  SELECT CONCAT('[', v_is_written, ',', v_has_changed, ',', v_version, ',"', HEX(v_value), '"]') AS answer;`,
  )
}
