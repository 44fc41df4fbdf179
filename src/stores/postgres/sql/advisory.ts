/**
 * Takes those of the advisory locks that are free, each with a fence. The fence is counted while
 * the lock is held, so it grows in the order of the grants. Like that of a line, it is never behind
 * the clock. `p_keys` is an array of bigint; the answer is `{ pid, fences: { key: fence } }`.
 */
export const advisorySql = `
CREATE TABLE holdfast.advisory_fence (
  key bigint PRIMARY KEY,
  last bigint NOT NULL
) WITH (fillfactor = 50);

CREATE FUNCTION holdfast.try_advisory(p_keys text) RETURNS text
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  k bigint;
  fence bigint;
  taken bigint[] := '{}';
  fences jsonb := '{}';
BEGIN
  FOREACH k IN ARRAY p_keys::bigint[] LOOP
    CONTINUE WHEN NOT pg_try_advisory_lock(k);
    taken := taken || k;
    INSERT INTO holdfast.advisory_fence AS f VALUES (k, holdfast.clock(NULL))
      ON CONFLICT (key) DO UPDATE SET last = greatest(f.last + 1, excluded.last) RETURNING f.last INTO fence;
    fences := fences || jsonb_build_object(k::text, fence);
  END LOOP;
  RETURN jsonb_build_object('pid', pg_backend_pid(), 'fences', fences);
EXCEPTION WHEN query_canceled OR OTHERS THEN
  -- A lock of a session outlives a transaction that is undone.
  FOREACH k IN ARRAY taken LOOP
    PERFORM pg_advisory_unlock(k);
  END LOOP;
  RAISE;
END $$;
`
