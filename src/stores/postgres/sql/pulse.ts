import { EXCLUSIVE } from '../../../contract/constants.js'
import { FENCE_LIMIT } from '../../shared/failures.js'
import { isFenceTooHigh } from '../../shared/sql.js'

/** The answer for a hold, with further fields. */
const held = (more: string): string =>
  `jsonb_build_object('status', 'held', 'fence', c.fence, 'leaseMs', holdfast.ms(c.expires - t.now),
        'isWanted', t.next IS NOT NULL${more})`

/**
 * Renews holds and keeps places, and answers the state of each. `p_lines`: `[{ resource, beats: [{
 * n, id, lease, presence, permits, block, first, count, deaf }] }]`, where `first` and `count` are
 * the fences that the beat names; the reply: `[[n, answer], …]`. Lines are locked in the order of
 * their keys, so that two pulses cannot deadlock. An id that is not in its line is gone for ever: a
 * pulse creates nothing.
 */
export const pulseSql = `
CREATE FUNCTION holdfast.pulse(p_space text, p_lines text, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  l record;
  t holdfast.opened_line;
  -- As texts: appending to a jsonb copies all of it.
  answer text;
  replies text[] := '{}';
  news jsonb := '[]';
  is_durable boolean := false;
BEGIN
  FOR l IN SELECT k.key, e ->> 'resource' AS resource, e -> 'beats' AS beats
    FROM jsonb_array_elements(p_lines::jsonb) e, LATERAL (SELECT holdfast.key_of(p_space, e ->> 'resource') AS key OFFSET 0) k
    ORDER BY k.key LOOP
    -- Most beats are for a hold that is alone in its line.
    answer := CASE WHEN jsonb_array_length(l.beats) = 1 THEN holdfast.renew_sole(l.key, l.beats -> 0, p_at) END;
    IF answer IS NOT NULL THEN
      is_durable := true;
      replies := replies || answer;
      CONTINUE;
    END IF;
    t := holdfast.advance(holdfast.open_line(p_space, l.resource, p_channel, false, p_at));
    t := holdfast.advance(holdfast.refresh(t, l.beats));
    t := holdfast.reserve(holdfast.beat_replies(t, l.beats), l.beats);
    IF t.is_changed THEN
      PERFORM holdfast.write_line(t);
      PERFORM holdfast.make_sole(t, l.beats -> 0 ->> 'id');
    END IF;
    is_durable := is_durable OR t.is_durable;
    news := news || t.news;
    replies := replies || ARRAY(SELECT jsonb_array_elements_text(t.reply));
  END LOOP;
  RETURN holdfast.answer(('[' || array_to_string(replies, ',') || ']')::jsonb, news, is_durable);
END $$;

-- One by one: a join that was planned while the table was small reads the whole line for each beat.
CREATE FUNCTION holdfast.refresh(t holdfast.opened_line, p_beats jsonb) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  b record;
  is_held boolean;
BEGIN
  FOR b IN SELECT * FROM jsonb_to_recordset(p_beats) AS r(id text, lease bigint, presence bigint, permits bigint, block bigint,
    first bigint, count bigint) LOOP
    IF b.first IS NOT NULL THEN
      t := holdfast.take_fences(t, b.id, b.first, b.count);
    END IF;
    UPDATE holdfast.claim d SET
        expires = greatest(d.expires, CASE WHEN d.fence IS NULL THEN t.now + b.presence ELSE least(t.now + b.lease, d.since + d.max_hold) END),
        permits = CASE WHEN d.fence IS NULL THEN d.permits ELSE least(d.permits, b.permits) END,
        block = CASE WHEN d.fence IS NULL THEN d.block ELSE greatest(d.block, b.block) END
      WHERE d.line = t.id AND d.id = b.id AND d.expires > t.now RETURNING d.fence IS NOT NULL INTO is_held;
    IF FOUND THEN
      t.is_changed := true;
      t.is_stale := t.is_stale OR is_held;
      t.is_durable := t.is_durable OR is_held;
    END IF;
  END LOOP;
  RETURN t;
END $$;

-- Just these fences for a hold, unless one of them may have been given before. Since an exclusive
-- claim was granted, no other claim has got a fence of its line.
CREATE FUNCTION holdfast.take_fences(t holdfast.opened_line, p_id text, p_first bigint, p_count bigint) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  c holdfast.claim;
BEGIN
  SELECT * INTO c FROM holdfast.claim d WHERE d.line = t.id AND d.id = p_id AND d.expires > t.now;
  IF c.fence IS NULL OR p_first <= (CASE WHEN c.permits = ${EXCLUSIVE} THEN c.fence ELSE t.last END) THEN
    RETURN t;
  ELSIF ${isFenceTooHigh('p_first', 'p_count')} THEN
    RAISE EXCEPTION '${FENCE_LIMIT}';
  END IF;
  UPDATE holdfast.claim d SET fence = p_first, block = greatest(d.block, p_count) WHERE d.line = t.id AND d.id = p_id;
  t.last := greatest(t.last, p_first + p_count - 1);
  RETURN t;
END $$;

CREATE FUNCTION holdfast.beat_replies(t holdfast.opened_line, p_beats jsonb) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
BEGIN
  SELECT jsonb_agg(jsonb_build_array(b.n, CASE
      WHEN c.id IS NULL THEN '{"status": "gone"}'
      WHEN c.fence IS NULL THEN holdfast.waiting(t, c, b.deaf)
      WHEN c.fence <> b.first THEN ${held(", 'newest', t.last")}
      ELSE ${held('')} END)) INTO t.reply
    FROM jsonb_to_recordset(p_beats) AS b(n integer, id text, deaf boolean, first bigint)
    LEFT JOIN LATERAL (SELECT * FROM holdfast.claim d WHERE d.line = t.id AND d.id = b.id AND d.expires > t.now OFFSET 0) c ON true;
  RETURN t;
END $$;

-- Further fences for holds whose beat asks for a block.
CREATE FUNCTION holdfast.reserve(t holdfast.opened_line, p_beats jsonb) RETURNS holdfast.opened_line LANGUAGE plpgsql AS $$
DECLARE
  b record;
  fence bigint;
BEGIN
  FOR b IN SELECT r.n, r.block, a.place - 1 AS place, a.reply -> 1 AS reply
    FROM jsonb_to_recordset(p_beats) AS r(n integer, block bigint)
    JOIN jsonb_array_elements(t.reply) WITH ORDINALITY AS a(reply, place) ON (a.reply ->> 0)::integer = r.n
    WHERE r.block IS NOT NULL AND a.reply -> 1 ->> 'status' = 'held' ORDER BY r.n LOOP
    fence := holdfast.take_fence(t, 0, b.block);
    t.last := fence + b.block - 1;
    t.is_changed := true;
    t.reply := jsonb_set(t.reply, ARRAY[b.place::text, '1', 'block'], to_jsonb(fence));
  END LOOP;
  RETURN t;
END $$;
`
