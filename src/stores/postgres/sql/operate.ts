/**
 * `evict` revokes holds; `cancel` removes one waiter; `resize` pins a capacity, and removes waiters
 * that can never fit.
 */
export const operateSql = `
-- The hold with that fence, or every hold.
CREATE FUNCTION holdfast.evict(p_space text, p_resource text, p_fence bigint, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.opened_line := holdfast.advance(holdfast.open_line(p_space, p_resource, p_channel, false, p_at));
  c holdfast.claim;
  revoked jsonb := '[]';
BEGIN
  FOR c IN SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NOT NULL AND d.fence = coalesce(p_fence, d.fence)
    ORDER BY d.place LOOP
    revoked := revoked || jsonb_build_array(holdfast.view(t.now, c));
    t := holdfast.revoke_claim(t, c);
    t.is_durable := true;
  END LOOP;
  RETURN holdfast.close_line(holdfast.advance(t), revoked);
END $$;

-- The waiting claim with that id.
CREATE FUNCTION holdfast.cancel(p_space text, p_resource text, p_id text, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.opened_line := holdfast.advance(holdfast.open_line(p_space, p_resource, p_channel, false, p_at));
  c holdfast.claim;
  cancelled jsonb := '[]';
BEGIN
  SELECT * INTO c FROM holdfast.claim d WHERE d.id = p_id AND d.line = t.id AND d.fence IS NULL AND d.expires > t.now;
  IF FOUND THEN
    cancelled := jsonb_build_array(holdfast.view(t.now, c));
    t := holdfast.revoke_claim(t, c);
    t.is_durable := true;
  END IF;
  RETURN holdfast.close_line(holdfast.advance(t), cancelled);
END $$;

CREATE FUNCTION holdfast.resize(p_space text, p_resource text, p_declared bigint, p_capacity bigint, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.opened_line := holdfast.advance(holdfast.open_line(p_space, p_resource, p_channel, true, p_at));
  c holdfast.claim;
BEGIN
  t.declared := p_declared;
  t.pinned := p_capacity;
  -- Once all claims of the line declare it, there is nothing to remember.
  IF p_declared = p_capacity AND NOT EXISTS (SELECT FROM holdfast.claims_of(t.id) d
    WHERE d.expires > t.now AND d.capacity <> p_capacity) THEN
    t.declared := NULL;
    t.pinned := NULL;
  END IF;
  t.is_changed := true;
  t.is_durable := true;
  -- A waiter that wants more than the capacity would block the line for ever.
  FOR c IN SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.fence IS NULL AND d.expires > t.now AND d.permits > p_capacity
    ORDER BY d.place LOOP
    t := holdfast.revoke_claim(t, c);
  END LOOP;
  RETURN holdfast.close_line(holdfast.advance(t), 'null');
END $$;
`
