import { hasFencesLeft, lineClock, nextFence } from '../../shared/sql.js'

const NOW = lineClock('wall')

/**
 * The fast path of a single claim or release: a free lock is acquired, or a hold is released that
 * no other claim waits for. It is one conditional UPDATE, which also locks the line. A hold that is
 * alone lives in the line's row, as the call that acquired it, until another call opens the line.
 * All other cases go to `calls`, with the same answer. `p_call` is one of its requests.
 */
export const fastPathSql = `
${takeSql('take', 'calls')}
CREATE FUNCTION holdfast.give_back(p_space text, p_resource text, p_call text, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  k bytea := holdfast.key_of(p_space, p_resource);
  p_id text := p_call::jsonb ->> 'id';
  wall bigint := holdfast.clock(p_at);
  now bigint;
  expiry bigint;
BEGIN
  UPDATE holdfast.line SET seen = ${NOW}, shift = ${NOW} - wall,
      used = 0, capacity = NULL, sole = NULL, call = NULL, channel = NULL
    WHERE key = k AND sole = p_id
    RETURNING seen, soonest INTO now, expiry;
  IF NOT FOUND THEN
    RETURN holdfast.calls(p_space, p_resource, '[' || p_call || ']', 0, p_channel, p_at);
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN jsonb_build_object('reply', jsonb_build_array(expiry > now), 'news', jsonb '[]');
END $$;

-- Moves a hold that is alone in its line into the line's row, where the fast path renews it.
CREATE FUNCTION holdfast.make_sole(t holdfast.opened_line, p_id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
BEGIN
  IF t.next IS NOT NULL OR t.pinned IS NOT NULL OR t.used = 0 THEN
    RETURN;
  END IF;
  -- It has the newest fences and all used permits.
  DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_id AND d.permits = t.used AND d.fence + d.block - 1 = t.last RETURNING d.* INTO c;
  IF c.id IS NOT NULL THEN
    UPDATE holdfast.line SET sole = c.id, since = c.since, channel = c.channel, call = jsonb_build_object('id', c.id, 'client', c.client,
        'permits', c.permits, 'capacity', c.capacity, 'max_hold', c.max_hold, 'floor', c.floor, 'block', c.block, 'info', c.info)
      WHERE key = t.key;
  END IF;
END $$;

-- Renews a hold that is alone, and answers its beat; null: not alone, or the beat asks for more.
CREATE FUNCTION holdfast.renew_sole(p_key bytea, p_beat jsonb, p_at bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  wall bigint := holdfast.clock(p_at);
  p_lease bigint := p_beat -> 'lease';
  l holdfast.line;
BEGIN
  IF p_beat ? 'permits' OR p_beat ? 'block' OR p_beat ? 'first' THEN
    RETURN NULL;
  END IF;
  UPDATE holdfast.line SET seen = ${NOW}, shift = ${NOW} - wall,
      soonest = greatest(soonest, least(${NOW} + p_lease, since + (call::json ->> 'max_hold')::bigint))
    WHERE key = p_key AND sole = p_beat ->> 'id' AND soonest > ${NOW}
    RETURNING * INTO l;
  IF l.id IS NULL THEN
    RETURN NULL;
  END IF;
  RETURN '[' || (p_beat ->> 'n') || ',{"status":"held","fence":' || (l.last - (l.call::json ->> 'block')::bigint + 1)
    || ',"leaseMs":' || (l.soonest - l.seen)::double precision / 1000 || ',"isWanted":false}]';
END $$;
`

/** `otherwise`: the routine for all other cases. */
export function takeSql(name: string, otherwise: string): string {
  return `CREATE FUNCTION holdfast.${name}(p_space text, p_resource text, p_call text, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  r holdfast.request := jsonb_populate_record(NULL::holdfast.request, p_call::jsonb);
  k bytea := holdfast.key_of(p_space, p_resource);
  -- Read before the line is locked: the line's clock does not go back, and the lease ends earlier.
  wall bigint := holdfast.clock(p_at);
  l holdfast.line;
BEGIN
  IF r.mode IN ('queue', 'try') AND r.permits <= r.capacity THEN
    UPDATE holdfast.line SET last = ${nextFence('last', 'r.floor', 'wall')} + r.block - 1,
        seen = ${NOW}, shift = ${NOW} - wall, places = places + 1,
        used = r.permits, capacity = r.capacity, soonest = ${NOW} + least(r.lease, r.max_hold),
        sole = r.id, since = ${NOW}, call = p_call, channel = p_channel
      WHERE key = k AND used = 0 AND next IS NULL AND pinned IS NULL AND ${hasFencesLeft('last', 'wall', 'r.block')}
      RETURNING * INTO l;
  END IF;
  IF l.id IS NULL THEN
    RETURN holdfast.${otherwise}(p_space, p_resource, '[' || p_call || ']', 1, p_channel, p_at);
  END IF;
  RETURN jsonb_build_object('reply', jsonb_build_array(jsonb_build_object('status', 'granted', 'fence', l.last - r.block + 1,
    'leaseMs', holdfast.ms(l.soonest - l.seen), 'isWanted', false)), 'news', jsonb '[]');
END $$;
`
}
