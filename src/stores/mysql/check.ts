import type { Env } from '../../base/env.js'
import type { Finding } from '../../contract/store.js'
import { checkClock } from '../shared/clock-check.js'
import type { MysqlRunner } from './runner.js'

const SETTINGS = [
  'version',
  'read_only',
  'innodb_flush_log_at_trx_commit',
  'binlog_format',
  'log_bin',
  'autocommit',
] as const

/** What `locks.check()` says of the server. */
export async function checkServer(runner: MysqlRunner, env: Env): Promise<Finding[]> {
  const columns = SETTINGS.map((name) => `@@${name}`).join(', ')
  const sentAt = env.wallMs()
  const [row = ''] = await runner.query(
    `SELECT CONCAT_WS('|', ${columns}, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) / 1000)`,
  )
  const values = row.split('|')
  const setting = (name: (typeof SETTINGS)[number]): string => values[SETTINGS.indexOf(name)] ?? ''
  return [
    checkVersion(setting('version')),
    checkRole(setting('read_only')),
    checkDurability(setting('innodb_flush_log_at_trx_commit')),
    checkLog(setting('log_bin'), setting('binlog_format')),
    checkAutocommit(setting('autocommit')),
    checkClock(Number(values.at(-1)), sentAt, env.wallMs()),
  ]
}

function checkVersion(version: string): Finding {
  const about = 'version'
  const isMariadb = /mariadb/i.test(version)
  const [major = 0, minor = 0] = version.split('.').map((part) => Number.parseInt(part, 10))
  const isNewEnough = isMariadb ? major > 10 || (major === 10 && minor >= 6) : major >= 8
  const name = `${isMariadb ? 'MariaDB' : 'MySQL'} ${version.split('-', 1)[0]}`
  if (isNewEnough) return { level: 'fine', about, text: `${name}.` }
  return { level: 'fault', about, text: `${name} is too old; Holdfast needs MySQL 8.0 or MariaDB 10.6.` }
}

function checkRole(readOnly: string): Finding {
  const about = 'role'
  if (isOff(readOnly)) return { level: 'fine', about, text: 'This server takes writes.' }
  const text = 'This server is read-only, as replicas are; connect to the primary.'
  return { level: 'fault', about, text }
}

function checkDurability(flush: string): Finding {
  const about = 'durability'
  if (flush === '1')
    return {
      level: 'fine',
      about,
      text: 'Every grant is on disk before it is answered (innodb_flush_log_at_trx_commit).',
    }
  const text = `innodb_flush_log_at_trx_commit is ${flush}: a crash of the machine may forget the grants of the last second. Set it to 1 if that matters.`
  return { level: 'risk', about, text }
}

function checkLog(isLogged: string, format: string): Finding {
  const about = 'binary log'
  if (isOff(isLogged))
    return { level: 'fine', about, text: 'There is none, so there is no replica that could take over.' }
  if (format === 'STATEMENT') {
    const text = 'binlog_format is STATEMENT, which InnoDB refuses at READ COMMITTED; set it to ROW or MIXED.'
    return { level: 'fault', about, text }
  }
  const text = `It is written (${format}). A failover to a replica may lose the latest grants, unless replication is synchronous.`
  return { level: 'risk', about, text }
}

function checkAutocommit(autocommit: string): Finding {
  const about = 'autocommit'
  if (!isOff(autocommit)) return { level: 'fine', about, text: 'Connections commit by themselves.' }
  const text =
    'autocommit is off for connections of this pool: they would never see changes. Give Holdfast a pool with autocommit on.'
  return { level: 'fault', about, text }
}

function isOff(setting: string): boolean {
  return setting === '0' || setting === 'OFF'
}
