import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Finding } from '../../contract/store.js'
import type { SqliteDatabase } from '../../drivers/sqlite.js'

/**
 * Network file systems, by Linux's magic numbers (statfs(2)). Their file locks are not reliable.
 */
const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x00c36400, 'Ceph'],
  [0x01021997, '9P'],
])

export function checkFile(database: SqliteDatabase, path: string): Finding[] {
  return [checkJournal(database, path), checkFileSystem(path), checkIntegrity(database, path)]
}

function checkJournal(database: SqliteDatabase, path: string): Finding {
  const mode = String(database.prepare('PRAGMA journal_mode').get()?.['journal_mode'])
  const version = String(database.prepare('SELECT sqlite_version() AS version').get()?.['version'])
  return mode === 'wal'
    ? { level: 'fine', about: 'journal', text: `SQLite ${version} in WAL mode; a crash loses no hold.` }
    : {
        level: 'risk',
        about: 'journal',
        text: `${path} is in journal mode ${mode}, in which readers and writers block each other; let Holdfast create the file again.`,
      }
}

function checkFileSystem(path: string): Finding {
  const about = 'file system'
  // On other systems the type has another meaning.
  if (process.platform !== 'linux')
    return { level: 'fine', about, text: `Make sure that ${dirname(path)} is on a local disk.` }
  const name = NETWORK_FILE_SYSTEMS.get(statfsSync(dirname(path)).type >>> 0)
  if (name === undefined) return { level: 'fine', about, text: `${dirname(path)} is on a local disk.` }
  const text = `${dirname(path)} is on ${name}, whose file locks are not reliable; move the file to a local disk, or use a server.`
  return { level: 'fault', about, text }
}

function checkIntegrity(database: SqliteDatabase, path: string): Finding {
  const about = 'integrity'
  const result = String(database.prepare('PRAGMA quick_check(1)').get()?.['quick_check'])
  if (result === 'ok') return { level: 'fine', about, text: `${path} is sound.` }
  const text = `${path} is damaged (${result}); stop all processes that use it, move it and its -wal and -shm files away, start again.`
  return { level: 'fault', about, text }
}
