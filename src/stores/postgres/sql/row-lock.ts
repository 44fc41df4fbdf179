/**
 * Locks a row until the caller's own transaction ends. Every holder changes the row: in REPEATABLE
 * READ and SERIALIZABLE a transaction that has waited then fails (40001) and begins again, so that
 * it never works on data from before it held the lock.
 */
export const rowLockSql = `
CREATE FUNCTION holdfast.lock_row(p_name text, p_wait_ms text) RETURNS void
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  k bytea := holdfast.key_of('', p_name);
  before text := current_setting('lock_timeout');
BEGIN
  IF p_wait_ms IS NOT NULL THEN
    PERFORM set_config('lock_timeout', p_wait_ms, true);
  END IF;
  LOOP
    UPDATE holdfast.row_lock SET turns = turns + 1 WHERE key = k;
    EXIT WHEN FOUND;
    INSERT INTO holdfast.row_lock (key, name) VALUES (k, p_name) ON CONFLICT (key) DO NOTHING;
  END LOOP;
  PERFORM set_config('lock_timeout', before, true);
END $$;
`
