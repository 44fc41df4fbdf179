import type { Env } from '../../base/env.js'
import type { Database } from '../../drivers/sqlite.js'
import { type Era, isOfEarlierBoot } from './clock.js'

/** The mark of the file's clock, if that is this machine's present one; otherwise undefined. */
export function presentEra(database: Database, env: Env, bootId: string | null): string | undefined {
  const era = readEra(database)
  return isOfEarlierBoot(era, bootId, env.now()) ? undefined : era.boot
}

function readEra(database: Database): Era {
  const head = database.prepare('SELECT boot, seen FROM holdfast').get()
  return { boot: String(head?.['boot']), seen: Number(head?.['seen']) }
}

/**
 * Puts the file under this machine's present clock, inside the transaction that opens it, and gives the mark of that clock.
 *
 * Times of an earlier start mean nothing now. They are moved by the difference between now and the last moment that was written:
 * the file's clock stood still while the machine was off. So every claim keeps at least what was left of its lease: nothing is granted
 * twice even if the file was carried to another machine while a holder lives on, and nothing is held longer than one lease more.
 */
export function settleEra(database: Database, isNew: boolean, env: Env, bootId: string | null): string {
  const now = env.now()
  if (isNew) {
    const boot = bootId ?? env.id()
    database.prepare('INSERT INTO holdfast (one, counter, boot, seen) VALUES (1, 0, ?, ?)').run(boot, now)
    return boot
  }
  const era = readEra(database)
  if (!isOfEarlierBoot(era, bootId, now)) return era.boot
  const boot = bootId ?? env.id()
  const shiftMs = now - era.seen
  database.prepare('UPDATE claim SET expires = expires + ?, since = since + ?').run(shiftMs, shiftMs)
  database.prepare('UPDATE state SET expires = expires + ? WHERE expires IS NOT NULL').run(shiftMs)
  // Of processes that ended with that start.
  database.exec('DELETE FROM watcher')
  database.prepare('UPDATE holdfast SET boot = ?, seen = ?').run(boot, now)
  return boot
}
