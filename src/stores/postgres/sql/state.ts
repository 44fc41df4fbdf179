/**
 * States: small versioned values. A deleted one stays for a while with version 0, so that no
 * version comes twice. A watch reads with the row locked: no change can come between the value and
 * the watch.
 */
export const stateSql = `
CREATE FUNCTION holdfast.lock_state(p_space text, p_name text) RETURNS holdfast.state LANGUAGE plpgsql AS $$
DECLARE
  p_key bytea := holdfast.key_of(p_space, p_name);
  s holdfast.state;
BEGIN
  LOOP
    SELECT * INTO s FROM holdfast.state WHERE key = p_key FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO holdfast.state (key, space, name) VALUES (p_key, p_space, p_name) ON CONFLICT (key) DO NOTHING RETURNING * INTO s;
    EXIT WHEN FOUND;
  END LOOP;
  RETURN s;
END $$;

-- null: there is none, or it has expired.
CREATE FUNCTION holdfast.state_value(s holdfast.state, p_wall bigint) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN s.version > 0 AND coalesce(s.expires > p_wall, true)
    THEN jsonb_build_object('version', s.version, 'value', s.value) END
$$;

CREATE FUNCTION holdfast.read(p_space text, p_name text, p_at bigint) RETURNS text LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT holdfast.state_value(s, holdfast.clock(p_at))::text FROM holdfast.state s WHERE s.key = holdfast.key_of(p_space, p_name)
$$;

-- The next states after a key, and the key to go on from; null: there are no more.
CREATE FUNCTION holdfast.state_page(p_space text, p_prefix text, p_after text, p_most integer, p_at bigint) RETURNS text LANGUAGE sql STABLE SET enable_seqscan = off SET enable_bitmapscan = off AS $$
  SELECT jsonb_build_object(
      'states', coalesce(jsonb_agg(jsonb_build_object('key', s.name, 'version', s.version, 'value', s.value))
        FILTER (WHERE holdfast.state_value(s, holdfast.clock(p_at)) IS NOT NULL), '[]'),
      'next', CASE WHEN count(*) = p_most THEN (array_agg(encode(s.key, 'hex') ORDER BY s.key DESC))[1] END)::text
    FROM (SELECT * FROM holdfast.state
      WHERE key > decode(p_after, 'hex') AND space = p_space AND starts_with(name, p_prefix)
      ORDER BY key LIMIT p_most) s
$$;

CREATE FUNCTION holdfast.watch(p_space text, p_name text, p_channel text, p_client text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  s holdfast.state := holdfast.lock_state(p_space, p_name);
  wall bigint := holdfast.clock(p_at);
BEGIN
  INSERT INTO holdfast.watcher VALUES (s.key, p_channel, p_client, p_name, wall)
    ON CONFLICT (key, channel, client) DO UPDATE SET seen = wall;
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN holdfast.state_value(s, wall);
END $$;

-- Compare-and-set. p_expect null: there must be none. p_value null deletes. p_keep: how long it is
-- kept; null: until it is deleted.
CREATE FUNCTION holdfast.write(p_space text, p_name text, p_expect bigint, p_value text, p_keep bigint, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  s holdfast.state := holdfast.lock_state(p_space, p_name);
  wall bigint := holdfast.clock(p_at);
  before jsonb := holdfast.state_value(s, wall);
  t holdfast.opened_line;
  w record;
BEGIN
  IF (before ->> 'version')::bigint IS DISTINCT FROM p_expect THEN
    RETURN holdfast.answer(jsonb_build_object('written', false, 'current', before), '[]', false);
  ELSIF before IS NULL AND p_value IS NULL THEN
    -- Deleting a missing value changes nothing, so no watcher is told.
    RETURN holdfast.answer('{"written": true, "current": null}', '[]', false);
  END IF;
  s.last := greatest(s.last + 1, wall);
  s.version := CASE WHEN p_value IS NULL THEN 0 ELSE s.last END;
  s.value := coalesce(p_value, '');
  s.expires := CASE WHEN p_value IS NULL THEN wall ELSE wall + p_keep END;
  UPDATE holdfast.state SET last = s.last, version = s.version, value = s.value, expires = s.expires WHERE key = s.key;
  t.channel := p_channel;
  t.news := '[]';
  FOR w IN DELETE FROM holdfast.watcher d WHERE d.key = s.key RETURNING * LOOP
    t := holdfast.tell(t, w.channel, w.client, jsonb_build_object('type', 'state', 'key', w.name));
  END LOOP;
  RETURN holdfast.answer(jsonb_build_object('written', true, 'current', holdfast.state_value(s, wall)), t.news, true);
END $$;
`
