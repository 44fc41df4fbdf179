/**
 * Joins a line. The same id again gives the present answer, so a claim may be sent twice. Mode is queue, try, steal or adopt; with
 * adopt, `p_old` is the hold whose very place is taken.
 */
export const claimSql = `
CREATE FUNCTION holdfast.claim(p_space text, p_resource text, p_id text, p_channel text, p_client text, p_permits bigint,
  p_capacity bigint, p_lease bigint, p_presence bigint, p_max_hold bigint, p_floor bigint, p_block bigint, p_info text,
  p_mode text, p_old text, p_old_fence bigint, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.turn := holdfast.settle(holdfast.open_line(p_space, p_resource, p_channel, true, p_at));
  c holdfast.claim;
  old holdfast.claim;
  most bigint;
BEGIN
  SELECT * INTO c FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_id AND t.capacity IS NOT NULL;
  IF FOUND AND c.expires > t.now THEN
    RETURN holdfast.close_line(t, CASE WHEN c.fence IS NULL THEN holdfast.waiting(t, c) ELSE holdfast.granted(t, c) END);
  ELSIF FOUND THEN
    DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_id;
  END IF;

  c := (t.id, p_id, t.places + 1, NULL::bigint, p_permits, p_capacity, t.now + p_presence, t.now, p_max_hold, p_floor, p_block,
    p_channel, p_client, p_info);

  IF p_mode = 'adopt' THEN
    SELECT * INTO old FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_old AND d.expires > t.now;
    -- What was passed on before it shrank tells of permits that are others' by now.
    IF old.fence IS DISTINCT FROM p_old_fence OR p_permits > old.permits THEN
      RETURN holdfast.close_line(t, '{"status": "refused", "reason": "gone"}');
    END IF;
    t := holdfast.rob(t, old);
    c.place := old.place;
    c.permits := old.permits;
    c.capacity := old.capacity;
    RETURN holdfast.grant(t, c, p_lease);
  END IF;

  most := coalesce(t.pinned, t.capacity, p_capacity);
  IF (p_capacity <> most AND p_capacity IS DISTINCT FROM t.declared) OR p_permits > most THEN
    RETURN holdfast.close_line(t, jsonb_build_object('status', 'refused', 'reason', 'capacity', 'capacity', most));
  END IF;

  IF p_mode = 'steal' THEN
    FOR old IN SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NOT NULL ORDER BY d.place LOOP
      t := holdfast.rob(t, old);
    END LOOP;
    c.place := -c.place;
    RETURN holdfast.grant(t, c, p_lease);
  END IF;

  IF t.next IS NULL AND t.used + p_permits <= most THEN
    RETURN holdfast.grant(t, c, p_lease);
  ELSIF p_mode = 'try' THEN
    RETURN holdfast.close_line(t, '{"status": "refused", "reason": "busy"}');
  END IF;
  INSERT INTO holdfast.claim SELECT c.*;
  t.places := t.places + 1;
  t.next := coalesce(t.next, c.id);
  t.is_changed := true;
  RETURN holdfast.close_line(t, holdfast.waiting(t, c));
END $$;

CREATE FUNCTION holdfast.granted(t holdfast.turn, c holdfast.claim) RETURNS jsonb LANGUAGE sql AS $$
  SELECT jsonb_build_object('status', 'granted', 'fence', c.fence, 'leaseMs', holdfast.ms(c.expires - t.now))
$$;

-- Enters as a hold, with the full lease; others may fit beside it where it took the place of larger ones.
CREATE FUNCTION holdfast.grant(t holdfast.turn, c holdfast.claim, p_lease bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  has_waiters boolean := t.next IS NOT NULL;
BEGIN
  c.fence := holdfast.take_fence(t, c.floor, c.block);
  c.expires := least(t.now + p_lease, t.now + c.max_hold);
  INSERT INTO holdfast.claim SELECT c.*;
  t.last := c.fence + c.block - 1;
  t.places := t.places + 1;
  t.is_changed := true;
  t.is_durable := true;
  IF has_waiters THEN
    t := holdfast.settle(t);
  END IF;
  RETURN holdfast.close_line(t, holdfast.granted(t, c));
END $$;
`
