/**
 * Renews holds and keeps places, and tells what became of each. `p_lines`: `[{ resource, beats: [{ n, id, lease, presence, permits, block }] }]`;
 * the reply: `[[n, answer], …]`. Lines are locked in the order of their keys, so that two pulses cannot wait for each other.
 * An id that is not in its line is gone, for ever: nothing is created here.
 */
export const pulseSql = `
CREATE FUNCTION holdfast.pulse(p_space text, p_lines text, p_channel text, p_at bigint) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  l record;
  t holdfast.turn;
  replies jsonb := '[]';
  news jsonb := '[]';
  is_durable boolean := false;
  b record;
  c holdfast.claim;
  reply jsonb;
  first bigint;
BEGIN
  FOR l IN SELECT e ->> 'resource' AS resource, e -> 'beats' AS beats FROM jsonb_array_elements(p_lines::jsonb) e
    ORDER BY holdfast.key_of(p_space, e ->> 'resource') LOOP
    t := holdfast.open_line(p_space, l.resource, p_channel, false, p_at);
    t := holdfast.refresh(holdfast.settle(t), l.beats);
    FOR b IN SELECT * FROM jsonb_to_recordset(l.beats) AS r(n integer, id text, block bigint) LOOP
      SELECT * INTO c FROM holdfast.claim d WHERE d.line = t.id AND d.id = b.id AND d.expires > t.now;
      reply := holdfast.beat_reply(t, c);
      IF b.block IS NOT NULL AND c.fence IS NOT NULL THEN
        first := holdfast.take_fence(t, 0, b.block);
        t.last := first + b.block - 1;
        reply := reply || jsonb_build_object('block', first);
      END IF;
      replies := replies || jsonb_build_array(jsonb_build_array(b.n, reply));
    END LOOP;
    IF t.is_changed THEN
      PERFORM holdfast.write_line(t);
    END IF;
    is_durable := is_durable OR t.is_durable;
    news := news || t.news;
  END LOOP;
  RETURN holdfast.answer(replies, news, is_durable);
END $$;

CREATE FUNCTION holdfast.refresh(t holdfast.turn, p_beats jsonb) RETURNS holdfast.turn LANGUAGE plpgsql AS $$
DECLARE
  b record;
  c holdfast.claim;
BEGIN
  FOR b IN SELECT * FROM jsonb_to_recordset(p_beats) AS r(id text, lease bigint, presence bigint, permits bigint) LOOP
    UPDATE holdfast.claim d SET
        expires = greatest(d.expires, CASE WHEN d.fence IS NULL THEN t.now + b.presence ELSE least(t.now + b.lease, d.since + d.max_hold) END),
        permits = CASE WHEN d.fence IS NULL THEN d.permits ELSE least(d.permits, b.permits) END
      WHERE d.line = t.id AND d.id = b.id AND d.expires > t.now RETURNING d.* INTO c;
    t.is_changed := t.is_changed OR FOUND;
    t.is_durable := t.is_durable OR (FOUND AND c.fence IS NOT NULL);
  END LOOP;
  RETURN holdfast.settle(t);
END $$;

CREATE FUNCTION holdfast.beat_reply(t holdfast.turn, c holdfast.claim) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  IF c.id IS NULL THEN
    RETURN '{"status": "gone"}';
  ELSIF c.fence IS NULL THEN
    RETURN holdfast.waiting(t, c);
  END IF;
  RETURN jsonb_build_object('status', 'held', 'fence', c.fence, 'leaseMs', holdfast.ms(c.expires - t.now));
END $$;
`
