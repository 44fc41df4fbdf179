import { fits } from '../../shared/sql.js'

/**
 * Claims and releases of one line, in their order and in one transaction. Each is a `request`; the
 * reply is an array of answers. With adopt, `old` is the hold whose place is taken. The same id
 * again gives the present answer, so a claim may be sent twice. `p_claims`: how many are claims;
 * without any, no line is created.
 */
export const callsSql = `
CREATE FUNCTION holdfast.calls(p_space text, p_resource text, p_calls text, p_claims integer, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.opened_line := holdfast.open_line(p_space, p_resource, p_channel, p_claims > 0, p_at);
  r holdfast.request;
  replies jsonb := '[]';
BEGIN
  FOR r IN SELECT * FROM jsonb_populate_recordset(NULL::holdfast.request, p_calls::jsonb) LOOP
    IF r.mode = 'release' THEN
      t := holdfast.leave_line(t, r.id);
    ELSE
      IF NOT t.is_advanced THEN
        t := holdfast.advance(t);
      END IF;
      t := holdfast.join_line(t, r);
    END IF;
    replies := replies || jsonb_build_array(t.reply);
  END LOOP;
  RETURN holdfast.close_line(t, replies);
END $$;

CREATE FUNCTION holdfast.leave_line(t holdfast.opened_line, p_id text) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
BEGIN
  DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_id RETURNING d.* INTO c;
  t.reply := to_jsonb(coalesce(c.expires > t.now, false));
  IF c.fence IS NOT NULL AND c.permits = t.used THEN
    t.used := 0;
    t.capacity := NULL;
    t.soonest := NULL;
  ELSIF c.fence IS NOT NULL THEN
    t.is_stale := true;
  END IF;
  t.is_changed := t.is_changed OR c.id IS NOT NULL;
  IF t.is_stale OR t.next IS NOT NULL OR t.soonest <= t.now THEN
    t := holdfast.advance(t);
  END IF;
  RETURN t;
END $$;

CREATE FUNCTION holdfast.join_line(t holdfast.opened_line, r holdfast.request) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
  most bigint;
BEGIN
  -- An empty line has no capacity, and no claim of this id.
  IF t.capacity IS NOT NULL THEN
    SELECT * INTO c FROM holdfast.claim d WHERE d.line = t.id AND d.id = r.id;
    IF FOUND AND c.expires > t.now THEN
      t.reply := holdfast.claim_reply(t, c, r.deaf);
      RETURN t;
    ELSIF FOUND THEN
      DELETE FROM holdfast.claim d WHERE d.line = t.id AND d.id = r.id;
    END IF;
  END IF;

  c := (t.id, r.id, t.places + 1, NULL::bigint, r.permits, r.capacity, t.now + r.presence, t.now, r.max_hold, r.floor, r.block,
    t.channel, r.client, r.info);
  IF r.mode = 'adopt' THEN
    RETURN holdfast.adopt(t, r, c);
  END IF;
  most := coalesce(t.pinned, t.capacity, r.capacity);
  IF (r.capacity <> most AND r.capacity IS DISTINCT FROM t.declared) OR r.permits > most THEN
    t.reply := jsonb_build_object('status', 'refused', 'reason', 'capacity', 'capacity', most);
    RETURN t;
  ELSIF r.mode = 'steal' THEN
    RETURN holdfast.steal(t, r, c);
  ELSIF t.next IS NULL AND ${fits('t.used', 'r.permits', 'most')} THEN
    RETURN holdfast.grant(t, c, r.lease);
  END IF;
  -- Where a claim waits already, the holders know it.
  IF t.next IS NULL THEN
    t := holdfast.tell_wanted(t);
  END IF;
  IF r.mode = 'try' THEN
    t.reply := '{"status": "refused", "reason": "busy"}';
    RETURN t;
  END IF;

  INSERT INTO holdfast.claim SELECT c.*;
  t.places := t.places + 1;
  t.next := coalesce(t.next, c.id);
  t.is_changed := true;
  t.reply := holdfast.waiting(t, c, r.deaf);
  RETURN t;
END $$;

CREATE FUNCTION holdfast.claim_reply(t holdfast.opened_line, c holdfast.claim, p_is_deaf boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF c.fence IS NULL THEN
    RETURN holdfast.waiting(t, c, p_is_deaf);
  END IF;
  RETURN jsonb_build_object('status', 'granted', 'fence', c.fence, 'leaseMs', holdfast.ms(c.expires - t.now),
    'isWanted', t.next IS NOT NULL);
END $$;

-- Joins as a hold, with the full lease.
CREATE FUNCTION holdfast.grant(t holdfast.opened_line, c holdfast.claim, p_lease bigint) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
BEGIN
  c.fence := holdfast.take_fence(t, c.floor, c.block);
  c.expires := least(t.now + p_lease, t.now + c.max_hold);
  INSERT INTO holdfast.claim SELECT c.*;
  t.last := c.fence + c.block - 1;
  t.places := t.places + 1;
  t.used := t.used + c.permits;
  t.capacity := coalesce(t.capacity, c.capacity);
  t.soonest := least(t.soonest, c.expires);
  t.is_changed := true;
  t.is_durable := true;
  t.reply := holdfast.claim_reply(t, c, false);
  RETURN t;
END $$;

CREATE FUNCTION holdfast.adopt(t holdfast.opened_line, r holdfast.request, c holdfast.claim) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  old holdfast.claim;
BEGIN
  SELECT * INTO old FROM holdfast.claim d WHERE d.line = t.id AND d.id = r.old AND d.expires > t.now;
  -- The hold may have shrunk since it was exported: its other permits are no longer its own.
  IF old.fence IS DISTINCT FROM r.old_fence OR r.permits > old.permits THEN
    t.reply := '{"status": "refused", "reason": "gone"}';
    RETURN t;
  END IF;
  t := holdfast.revoke_claim(t, old);
  -- The new hold takes the old one's place unchanged.
  c.place := old.place;
  c.permits := old.permits;
  c.capacity := old.capacity;
  RETURN holdfast.advance(holdfast.grant(t, c, r.lease));
END $$;

CREATE FUNCTION holdfast.steal(t holdfast.opened_line, r holdfast.request, c holdfast.claim) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  old holdfast.claim;
BEGIN
  FOR old IN SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NOT NULL ORDER BY d.place LOOP
    t := holdfast.revoke_claim(t, old);
  END LOOP;
  c.place := -c.place;
  t := holdfast.advance(holdfast.grant(t, c, r.lease));
  -- A waiter may fit beside it.
  t.reply := t.reply || jsonb_build_object('isWanted', t.next IS NOT NULL);
  RETURN t;
END $$;
`
