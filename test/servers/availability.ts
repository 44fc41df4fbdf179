import { describe } from 'vitest'
import { missing, SERVERS } from '../../scripts/servers.mjs'

export type ServerName =
  | 'redis'
  | 'postgres'
  | 'pgbouncer'
  | 'mariadb'
  | 'zookeeper'
  | 'etcd'
  | 'memcached'
  | 'iptables'
  | 'tmux'
  | 'chromium'
  | 'prometheus'

export interface Need {
  /** false: a running server that the environment names (HOLDFAST_TEST_REDIS_URL) will do. */
  own: boolean
}

/** null: it can be used here. Otherwise why not. */
export function serverAvailability(name: ServerName, need: Need = { own: true }): string | null {
  const variable = SERVERS[name]?.url?.variable
  if (!need.own && variable !== undefined && process.env[variable]) return null
  return missing(name)
}

/** `describe`; where the server is missing its tests are skipped, with the reason in the title. */
export function describeOn(name: ServerName, title: string, body: () => void, need?: Need): void {
  const reason = serverAvailability(name, need)
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, body)
}

/** Throws where the server cannot be started. */
export function needServer(name: ServerName): void {
  const reason = serverAvailability(name)
  if (reason !== null)
    throw new Error(`${reason}: apt-get install ${SERVERS[name]?.packages.join(' ')}, or use describeOn`)
}
