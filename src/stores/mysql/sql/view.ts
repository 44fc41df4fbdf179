import { routine, WALL } from './line.js'
import type { MysqlNames } from './names.js'

/** The columns, or expressions, of a claim. */
interface ClaimColumns {
  readonly id: string
  readonly permits: string
  readonly fence: string
  readonly info: string
  readonly since: string
  readonly expires: string
}

/** From the table of claims. */
export const CLAIM: ClaimColumns = {
  id: 'claim.id',
  permits: 'claim.permits',
  fence: "IF(claim.fence = 0, 'null', claim.fence)",
  info: 'claim.info',
  since: 'claim.since',
  expires: 'claim.expires',
}

/** From the row of a line whose only claim is a hold. */
const ALONE: ClaimColumns = {
  id: 'line.alone_id',
  permits: 'line.used',
  fence: 'line.last - line.alone_block + 1',
  info: 'line.alone_info',
  since: 'line.alone_since',
  expires: 'line.soonest',
}

/** A claim as `inspect` shows it. Id and info are in hexadecimal: they may be any bytes. */
export function viewOf({ id, permits, fence, info, since, expires }: ClaimColumns, now: string): string {
  return `CONCAT('{"id":"', HEX(${id}), '","permits":', ${permits}, ',"fence":', ${fence},
    ',"info":"', HEX(${info}), '","ageMs":', (${now} - ${since}) / 1000, ',"expiresInMs":', (${expires} - ${now}) / 1000, '}')`
}

/**
 * The lines as they are; takes no lock. Either one line (`p_line`), or those of a space whose names
 * begin with `p_prefix`, in the order of their names after `p_after`. One row for each claim, and
 * one for a line without any: resource, capacity, what claims may declare if it is pinned, claim.
 */
export function viewRoutine(names: MysqlNames): string {
  const { line, claim } = names
  const now = 'GREATEST(v_wall + line.shift, line.seen)'
  const select = (lines: string): string => `
    SELECT CONCAT('["', HEX(line.resource), '",', COALESCE(line.pinned, line.capacity), ',', COALESCE(line.declared, 'null'), ',',
        CASE WHEN claim.id IS NOT NULL THEN ${viewOf(CLAIM, now)}
          WHEN NOT line.is_alone OR line.soonest <= ${now} THEN 'null' ELSE ${viewOf(ALONE, now)} END, ']') AS answer
      FROM ${lines} AS line LEFT JOIN ${claim} AS claim ON claim.line = line.line AND claim.expires > ${now}`
  const page = `(
        SELECT line, resource, capacity, declared, pinned, shift, seen, last, used, soonest, is_alone, alone_block, alone_since, alone_id, alone_info FROM ${line}
          WHERE space = p_space AND resource >= p_prefix AND resource > p_after AND LEFT(resource, LENGTH(p_prefix)) = p_prefix
          ORDER BY resource LIMIT p_most)`
  return routine(
    names,
    'view',
    'p_line BINARY(32), p_space BLOB, p_prefix BLOB, p_after BLOB, p_most INT, p_at BIGINT',
    `
  DECLARE v_wall BIGINT DEFAULT COALESCE(p_at, ${WALL});
  IF p_line IS NULL THEN${select(page)}
      ORDER BY line.resource, claim.place;
  ELSE${select(line)}
      WHERE line.line = p_line ORDER BY claim.place;
  END IF;`,
  )
}
