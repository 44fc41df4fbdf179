import { takeSql } from './fast-path.js'

/**
 * `calls` and `take` for requests of which some have `max_waiters`: such a claim joins only if
 * fewer wait. These routines came after the first schema. They are added to it without a new
 * version, because clients that do not know them need nothing else.
 */
export const boundedSql = `
CREATE FUNCTION holdfast.bounded_calls(p_space text, p_resource text, p_calls text, p_claims integer, p_channel text, p_at bigint)
RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off AS $$
DECLARE
  t holdfast.opened_line := holdfast.open_line(p_space, p_resource, p_channel, p_claims > 0, p_at);
  call jsonb;
  r holdfast.request;
  replies jsonb := '[]';
BEGIN
  FOR call IN SELECT value FROM jsonb_array_elements(p_calls::jsonb) LOOP
    r := jsonb_populate_record(NULL::holdfast.request, call);
    IF r.mode = 'release' THEN
      t := holdfast.leave_line(t, r.id);
    ELSE
      IF NOT t.is_advanced THEN
        t := holdfast.advance(t);
      END IF;
      IF holdfast.is_full(t, r, (call ->> 'max_waiters')::bigint) THEN
        t.reply := '{"status": "refused", "reason": "full"}';
      ELSE
        t := holdfast.join_line(t, r);
      END IF;
    END IF;
    replies := replies || jsonb_build_array(t.reply);
  END LOOP;
  RETURN holdfast.close_line(t, replies);
END $$;

-- Whether the claim would be one too many. One that is in line, or is refused for another reason,
-- gets that answer.
CREATE FUNCTION holdfast.is_full(t holdfast.opened_line, r holdfast.request, p_most bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  capacity bigint := coalesce(t.pinned, t.capacity, r.capacity);
BEGIN
  IF p_most IS NULL OR r.mode <> 'queue' OR t.next IS NULL OR r.permits > capacity
      OR (r.capacity <> capacity AND r.capacity IS DISTINCT FROM t.declared)
      OR EXISTS (SELECT 1 FROM holdfast.claim d WHERE d.line = t.id AND d.id = r.id AND d.expires > t.now) THEN
    RETURN false;
  END IF;
  RETURN p_most <= (SELECT count(*) FROM (SELECT 1 FROM holdfast.claim d
    WHERE d.line = t.id AND d.fence IS NULL AND d.expires > t.now LIMIT p_most) w);
END $$;

${takeSql('take_bounded', 'bounded_calls')}
`
