import { MAINTENANCE_INTERVAL_MS } from '../../shared/time.js'

const INTERVAL_US = MAINTENANCE_INTERVAL_MS * 1000

function deleteStates(wall: string, retention: string, most: string): string {
  return `DELETE FROM holdfast.state s USING (
    SELECT key FROM holdfast.state WHERE coalesce(expires, 0) < ${wall} - ${retention} AND (expires IS NOT NULL OR version = 0)
      AND last < ${wall} - ${retention} LIMIT ${most} FOR UPDATE SKIP LOCKED
  ) ended WHERE s.key = ended.key`
}

function deleteFences(wall: string, retention: string, most: string): string {
  return `DELETE FROM holdfast.advisory_fence f USING (
    SELECT key FROM holdfast.advisory_fence WHERE last < ${wall} - ${retention} LIMIT ${most} FOR UPDATE SKIP LOCKED
  ) old WHERE f.key = old.key`
}

/** Answers 1 for the first client that asks within the maintenance interval, then 0. */
export const IS_SWEEP_DUE = counted(
  `UPDATE holdfast.meta SET swept = holdfast.clock(NULL) WHERE abs(holdfast.clock(NULL) - swept) > ${INTERVAL_US}`,
)

/**
 * Each removes at most $2 of a kind that has not been used for $1 microseconds, and answers how
 * many. The first removes some of the others as well.
 */
export const SWEEPS = [
  'SELECT holdfast.sweep($1, $2)::text',
  counted(deleteStates('holdfast.clock(NULL)', '$1::bigint', '$2::integer')),
  counted(deleteFences('holdfast.clock(NULL)', '$1::bigint', '$2::integer')),
] as const

function counted(change: string): string {
  return `WITH changed AS (${change} RETURNING 1) SELECT count(*)::text FROM changed`
}

/** Reading lines, and the maintenance. */
export const inspectSql = `
-- A line as it is; takes no lock.
CREATE FUNCTION holdfast.line_view(l holdfast.line, p_at bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
  now bigint := greatest(holdfast.clock(p_at) + l.shift, l.seen);
  capacity bigint;
  claims jsonb;
BEGIN
  SELECT max(c.capacity), coalesce(jsonb_agg(holdfast.view(now, c) ORDER BY c.fence IS NULL, c.place), '[]') INTO capacity, claims
    FROM (SELECT * FROM holdfast.claims_of(l.id) UNION ALL SELECT * FROM holdfast.sole_claim(l)) c WHERE c.expires > now;
  RETURN jsonb_build_object('resource', l.resource, 'capacity', coalesce(l.pinned, capacity), 'declared', l.declared,
    'claims', claims);
END $$;

CREATE FUNCTION holdfast.inspect_line(p_space text, p_resource text, p_at bigint) RETURNS text LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT holdfast.line_view(l, p_at)::text FROM holdfast.line l WHERE l.key = holdfast.key_of(p_space, p_resource)
$$;

-- The next lines after a key, and the key to go on from; null: there are no more.
CREATE FUNCTION holdfast.inspect_page(p_space text, p_prefix text, p_after text, p_most integer, p_at bigint) RETURNS text LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT jsonb_build_object('lines', coalesce(jsonb_agg(holdfast.line_view(l, p_at)), '[]'),
      'next', CASE WHEN count(*) = p_most THEN (array_agg(encode(l.key, 'hex') ORDER BY l.key DESC))[1] END)::text
    FROM (SELECT * FROM holdfast.line
      WHERE key > decode(p_after, 'hex') AND space = p_space AND starts_with(resource, p_prefix)
      ORDER BY key LIMIT p_most) l
$$;

-- Removes unused lines and states. A line stays while its capacity is pinned, and until the clock
-- has passed its fence, so that no fence comes twice. Skips locked rows. Gives the number of
-- removed lines.
CREATE FUNCTION holdfast.sweep(p_retention bigint DEFAULT ${INTERVAL_US}, p_most integer DEFAULT 1000, p_at bigint DEFAULT NULL)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  wall bigint := holdfast.clock(p_at);
  removed bigint;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true);
  WITH idle AS (
    SELECT l.key, l.id FROM holdfast.line l
      WHERE l.seen - l.shift < wall - p_retention AND l.last < wall - p_retention AND l.pinned IS NULL
        AND (l.sole IS NULL OR l.soonest <= wall + l.shift)
        AND NOT EXISTS (SELECT FROM holdfast.claim c WHERE c.line = l.id AND c.expires > wall + l.shift)
      LIMIT p_most FOR UPDATE SKIP LOCKED
  ), lapsed AS (
    DELETE FROM holdfast.claim c USING idle WHERE c.line = idle.id
  )
  DELETE FROM holdfast.line l USING idle WHERE l.key = idle.key;
  GET DIAGNOSTICS removed = ROW_COUNT;
  ${deleteStates('wall', 'p_retention', 'p_most')};
  ${deleteFences('wall', 'p_retention', 'p_most')};
  DELETE FROM holdfast.watcher WHERE seen < wall - greatest(p_retention, ${INTERVAL_US});
  RETURN removed;
END $$;
`
