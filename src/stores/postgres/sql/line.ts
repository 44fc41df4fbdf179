import { MOST_AHEAD } from '../../../contract/constants.js'
import { FENCE_LIMIT } from '../../shared/failures.js'
import { fits, isFenceTooHigh, nextFence } from '../../shared/sql.js'

/**
 * What every call on a line consists of: `open_line`, `advance`, the work, `close_line`. It
 * restates the line semantics of the embedded stores.
 *
 * An `opened_line` is a line while a call works on it: its row, its time, and the news to send. It
 * travels through the functions and is written once, at the end. The row also sums up the claims
 * (`used`, `capacity`, `soonest`, `next`), so that they are read only when the sum has changed: a
 * free lock is acquired and released without reading any claim.
 */
export const lineSql = `
CREATE TYPE holdfast.request AS (
  mode text,
  id text,
  client text,
  permits bigint,
  capacity bigint,
  lease bigint,
  presence bigint,
  max_hold bigint,
  floor bigint,
  block bigint,
  info text,
  old text,
  old_fence bigint,
  deaf boolean          -- the caller would not hear a push
);

CREATE TYPE holdfast.opened_line AS (
  key bytea,
  id bigint,
  resource text,
  last bigint,
  seen bigint,
  shift bigint,
  places bigint,
  declared bigint,
  pinned bigint,
  used bigint,          -- the permits of its holds
  capacity bigint,      -- what its claims declare; null: the line is empty
  soonest bigint,       -- when the first of its holds lapses
  next text,            -- the id of the first waiter
  channel text,         -- of the caller's store value, whose clients are told in the answer
  news jsonb,
  is_stale boolean,     -- holds have changed since used, capacity and soonest were computed
  is_changed boolean,   -- the line's row has to be written
  is_durable boolean,   -- a crash must not forget it
  is_advanced boolean,   -- lapsed claims are gone, and claims that fit are promoted
  wall bigint,          -- the server's clock
  now bigint,           -- the line's clock
  reply jsonb           -- to the call that was handled last
);

-- The length keeps the two names apart, whatever is in them.
CREATE FUNCTION holdfast.key_of(p_space text, p_name text) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN sha256(convert_to(length(p_space) || ':' || p_space || p_name, 'UTF8'));
END $$;

CREATE FUNCTION holdfast.clock(p_at bigint) RETURNS bigint LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(p_at, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
$$;

-- The hold that is alone in its line, while it is kept in the line's row.
CREATE FUNCTION holdfast.sole_claim(l holdfast.line) RETURNS SETOF holdfast.claim LANGUAGE sql STABLE AS $$
  SELECT l.id, r.id, l.places, l.last - r.block + 1, r.permits, r.capacity, l.soonest, l.since, r.max_hold, r.floor, r.block,
      l.channel, r.client, r.info
    FROM jsonb_populate_record(NULL::holdfast.request, l.call::jsonb) r WHERE l.sole IS NOT NULL
$$;

-- Locks the line until the end of the transaction. Its clock is read after that, and never goes
-- back: when the server's clock is set back, the line's is shifted by the difference, so that no
-- deadline moves away.
CREATE FUNCTION holdfast.open_line(p_space text, p_resource text, p_channel text, p_create boolean, p_at bigint)
RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  k bytea := holdfast.key_of(p_space, p_resource);
  t holdfast.opened_line;
BEGIN
  LOOP
    SELECT l.key, l.id, p_resource, l.last, l.seen, l.shift, l.places, l.declared, l.pinned, l.used, l.capacity,
      CASE WHEN l.used > 0 THEN l.soonest END, l.next, p_channel, '[]', false, l.sole IS NOT NULL, false INTO t
      FROM holdfast.line l WHERE l.key = k FOR UPDATE;
    EXIT WHEN FOUND OR NOT p_create;
    INSERT INTO holdfast.line (key, space, resource) VALUES (k, p_space, p_resource) ON CONFLICT (key) DO NOTHING;
  END LOOP;
  IF t.key IS NULL THEN
    t := (NULL, NULL, p_resource, 0, 0, 0, 0, NULL, NULL, 0, NULL, NULL, NULL, p_channel, '[]', false, false, false, false, 0, 0, NULL);
  END IF;
  -- The row is written without the hold that was alone in it.
  IF t.is_changed THEN
    INSERT INTO holdfast.claim SELECT c.* FROM holdfast.line l, holdfast.sole_claim(l) c WHERE l.key = k;
  END IF;
  t.wall := holdfast.clock(p_at);
  t.now := greatest(t.wall + t.shift, t.seen);
  t.shift := t.now - t.wall;
  t.is_advanced := t.next IS NULL AND coalesce(t.soonest > t.now, true);
  RETURN t;
END $$;

CREATE FUNCTION holdfast.write_line(t holdfast.opened_line) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE holdfast.line SET last = t.last, seen = t.now, shift = t.shift, places = t.places, declared = t.declared, pinned = t.pinned,
      used = t.used, capacity = t.capacity, soonest = t.soonest, next = t.next, sole = NULL, call = NULL, channel = NULL
    WHERE key = t.key;
END $$;

-- The answer to a call. The commit waits for the disk only where a crash must not forget it.
CREATE FUNCTION holdfast.answer(p_reply jsonb, p_news jsonb, p_is_durable boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF NOT p_is_durable THEN
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  RETURN jsonb_build_object('reply', p_reply, 'news', p_news);
END $$;

CREATE FUNCTION holdfast.close_line(t holdfast.opened_line, p_reply jsonb) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF t.is_changed THEN
    PERFORM holdfast.write_line(t);
  END IF;
  RETURN holdfast.answer(p_reply, t.news, t.is_durable);
END $$;

-- Tells a client: in the answer if it belongs to the caller's store value, else by NOTIFY at the
-- commit. News that is too long for a message becomes "ask for everything".
CREATE FUNCTION holdfast.tell(t holdfast.opened_line, p_channel text, p_client text, p_push jsonb) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  message text;
BEGIN
  IF p_channel = t.channel THEN
    t.news := t.news || jsonb_build_array(jsonb_build_array(p_client, p_push));
  ELSE
    message := jsonb_build_array(p_client, p_push);
    IF octet_length(message) > 7900 THEN
      message := jsonb_build_array(p_client, jsonb_build_object('type', 'gap'));
    END IF;
    PERFORM pg_notify(p_channel, message);
  END IF;
  RETURN t;
END $$;

CREATE FUNCTION holdfast.revoke_claim(t holdfast.opened_line, c holdfast.claim) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.claim WHERE line = c.line AND id = c.id;
  t.is_stale := true;
  t.is_changed := true;
  RETURN holdfast.tell(t, c.channel, c.client, jsonb_build_object('type', 'lost', 'resource', t.resource, 'id', c.id));
END $$;

-- A claim begins to wait, or a try was refused: tells the holders that have a block of fences.
CREATE FUNCTION holdfast.tell_wanted(t holdfast.opened_line) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
BEGIN
  FOR c IN SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NOT NULL AND d.block > 1 ORDER BY d.place LOOP
    t := holdfast.tell(t, c.channel, c.client, jsonb_build_object('type', 'wanted', 'resource', t.resource, 'id', c.id));
  END LOOP;
  RETURN t;
END $$;

-- The first fence of a block.
CREATE FUNCTION holdfast.take_fence(t holdfast.opened_line, p_floor bigint, p_block bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  fence bigint := ${nextFence('t.last', 'p_floor', 't.wall')};
BEGIN
  IF ${isFenceTooHigh('fence', 'p_block')} THEN
    RAISE EXCEPTION '${FENCE_LIMIT}';
  END IF;
  RETURN fence;
END $$;

CREATE FUNCTION holdfast.claims_of(p_line bigint) RETURNS SETOF holdfast.claim LANGUAGE sql STABLE AS $$
  SELECT * FROM holdfast.claim WHERE line = p_line AND fence IS NOT NULL
  UNION ALL SELECT * FROM holdfast.claim WHERE line = p_line AND fence IS NULL
$$;

-- Drops lapsed holds, and sums up the others.
CREATE FUNCTION holdfast.count_holds(t holdfast.opened_line) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NOT NULL AND d.expires <= t.now;
  SELECT coalesce(sum(c.permits), 0), max(c.capacity), min(c.expires) INTO t.used, t.capacity, t.soonest
    FROM holdfast.claim c WHERE c.line = t.id AND c.fence IS NOT NULL;
  t.is_stale := false;
  t.is_changed := true;
  RETURN t;
END $$;

-- Drops lapsed claims in front, and promotes: the granted claims are the longest prefix of the line
-- whose permits fit. Unless the capacity is pinned, all claims of a line declare the same one.
CREATE FUNCTION holdfast.advance(t holdfast.opened_line) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
BEGIN
  t.is_advanced := true;
  IF t.is_stale OR t.soonest <= t.now THEN
    t := holdfast.count_holds(t);
  END IF;
  IF t.next IS NULL THEN
    RETURN t;
  ELSIF t.used = 0 THEN
    t.capacity := NULL;
  END IF;
  LOOP
    SELECT * INTO c FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NULL ORDER BY d.place LIMIT 1;
    t.is_changed := t.is_changed OR t.next IS DISTINCT FROM c.id;
    t.next := c.id;
    EXIT WHEN NOT FOUND;
    IF c.expires <= t.now THEN
      DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NULL AND d.expires <= t.now;
      CONTINUE;
    END IF;
    t.capacity := coalesce(t.capacity, c.capacity);
    EXIT WHEN NOT ${fits('t.used', 'c.permits', 'coalesce(t.pinned, t.capacity)')};
    t := holdfast.promote(t, c);
  END LOOP;
  RETURN t;
END $$;

-- The waiter's deadline stays: only its next pulse proves that it is alive and starts the lease.
CREATE FUNCTION holdfast.promote(t holdfast.opened_line, c holdfast.claim) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
BEGIN
  c.fence := holdfast.take_fence(t, c.floor, c.block);
  c.expires := least(c.expires, t.now + c.max_hold);
  UPDATE holdfast.claim SET fence = c.fence, since = t.now, expires = c.expires WHERE line = c.line AND id = c.id;
  t.last := c.fence + c.block - 1;
  t.used := t.used + c.permits;
  t.soonest := least(t.soonest, c.expires);
  t.is_changed := true;
  t.is_durable := true;
  RETURN holdfast.tell(t, c.channel, c.client,
    jsonb_build_object('type', 'granted', 'resource', t.resource, 'id', c.id, 'fence', c.fence));
END $$;

CREATE FUNCTION holdfast.ms(p_us bigint) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT p_us::double precision / 1000
$$;

CREATE FUNCTION holdfast.waiting(t holdfast.opened_line, c holdfast.claim, p_is_deaf boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  reply jsonb := jsonb_build_object('status', 'waiting', 'presenceMs', holdfast.ms(c.expires - t.now), 'isNext', c.id = t.next,
    'freeInMs', CASE WHEN c.id = t.next THEN holdfast.ms(t.soonest - t.now) END, 'grantsAbove', t.last);
BEGIN
  IF p_is_deaf THEN
    reply := reply || jsonb_build_object('ahead', (SELECT count(*) FROM (SELECT 1 FROM holdfast.claim d
      WHERE d.line = t.id AND d.fence IS NULL AND d.place < c.place ORDER BY d.place LIMIT ${MOST_AHEAD}) a));
  END IF;
  RETURN reply;
END $$;

CREATE FUNCTION holdfast.view(p_now bigint, c holdfast.claim) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('id', c.id, 'permits', c.permits, 'fence', c.fence, 'info', c.info,
    'ageMs', holdfast.ms(p_now - c.since), 'expiresInMs', holdfast.ms(c.expires - p_now))
$$;
`
