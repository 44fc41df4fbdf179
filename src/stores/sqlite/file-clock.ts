import type { Env } from '../../base/env.js'
import type { SqliteDatabase } from '../../drivers/sqlite.js'
import { type FileClock, isOfEarlierBoot } from './clock.js'

/** The boot that the file's times belong to, if that is the present one; otherwise undefined. */
export function currentBoot(database: SqliteDatabase, env: Env, bootId: string | null): string | undefined {
  const clock = readClock(database)
  return isOfEarlierBoot(clock, bootId, env.now()) ? undefined : clock.boot
}

function readClock(database: SqliteDatabase): FileClock {
  const head = database.prepare('SELECT boot, seen FROM holdfast').get()
  return { boot: String(head?.['boot']), seen: Number(head?.['seen']) }
}

/**
 * Moves the file to the machine's present clock, inside the transaction that opens it, and returns
 * the boot.
 *
 * Times of an earlier boot are shifted by the difference between now and the last write, as if the
 * clock had stood still while the machine was off. So every claim keeps at least what was left of
 * its lease. Nothing is granted twice if the file was carried to another machine while a holder
 * lives on, and nothing is held for more than one more lease.
 */
export function moveToCurrentBoot(
  database: SqliteDatabase,
  isNew: boolean,
  env: Env,
  bootId: string | null,
): string {
  const now = env.now()
  if (isNew) {
    const boot = bootId ?? env.id()
    database.prepare('INSERT INTO holdfast (one, counter, boot, seen) VALUES (1, 0, ?, ?)').run(boot, now)
    return boot
  }
  const clock = readClock(database)
  if (!isOfEarlierBoot(clock, bootId, now)) return clock.boot
  const boot = bootId ?? env.id()
  const shiftMs = now - clock.seen
  database.prepare('UPDATE claim SET expires = expires + ?, since = since + ?').run(shiftMs, shiftMs)
  database.prepare('UPDATE state SET expires = expires + ? WHERE expires IS NOT NULL').run(shiftMs)
  // Their processes ended with that boot.
  database.exec('DELETE FROM watcher')
  database.prepare('UPDATE holdfast SET boot = ?, seen = ?').run(boot, now)
  return boot
}
