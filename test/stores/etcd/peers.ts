import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../../src/testing/conformance/checks.js'

const SOURCE = join(import.meta.dirname, '../../../bench/etcd')
const CACHE = join(import.meta.dirname, '../../../.cache')
const PROGRAM = join(CACHE, 'etcd-peer')

/** Builds the program with etcd's own client, once; why that is not possible. null: it is there. */
export function goObstacle(): string | null {
  if (existsSync(PROGRAM)) return null
  if (spawnSync('go', ['version']).status !== 0) return 'go not installed'
  mkdirSync(CACHE, { recursive: true })
  const { status } = spawnSync('go', ['build', '-o', PROGRAM, '.'], { cwd: SOURCE, timeout: 240_000 })
  return status === 0 ? null : 'the client for Go could not be fetched'
}

/** How each kind takes part in a line. */
export const KINDS = {
  ours: {
    count: (address: string, name: string, file: string, turns: string) => [
      ...[process.execPath, script('counter.mjs'), address, name, file, turns],
    ],
    hold: (address: string, name: string, ttl: string) => [
      ...[process.execPath, script('holder.mjs'), address, name, ttl],
    ],
  },
  etcdctl: {
    count: (address: string, name: string, file: string, turns: string) => {
      const add = `sh -c 'n=$(cat ${file}); printf %s $((n + 1)) > ${file}'`
      const lock = `etcdctl --endpoints ${address} lock ${name} -- ${add}`
      return ['sh', '-c', `i=0; while [ $i -lt ${turns} ]; do ${lock} || exit 1; i=$((i + 1)); done`]
    },
    // Without a command it prints its key, and holds until it is interrupted.
    hold: (address: string, name: string, ttl: string) => [
      ...['etcdctl', '--endpoints', address, 'lock', '--ttl', ttl, name],
    ],
  },
  go: {
    count: (address: string, name: string, file: string, turns: string) => [
      ...[PROGRAM, 'count', address, name, file, turns],
    ],
    hold: (address: string, name: string, ttl: string) => [PROGRAM, 'hold', address, name, ttl],
  },
}

function script(name: string): string {
  return join(import.meta.dirname, name)
}

/** A process that takes part in a line. It may have processes of its own, so all get its signals. */
export class EtcdPeer {
  said = ''
  /** Its exit code, and what it complained about. */
  readonly ended: Promise<{ code: number | null; complaint: string }>
  readonly #child: ChildProcess

  constructor([program = '', ...args]: readonly string[]) {
    this.#child = spawn(program, args, { detached: true, env: { ...process.env, ETCDCTL_API: '3' } })
    this.#child.stdin?.on('error', () => {})
    this.#child.stdout?.on('data', (text) => {
      this.said += text
    })
    let complaint = ''
    this.#child.stderr?.on('data', (text) => {
      complaint += text
    })
    this.ended = new Promise((resolve) => this.#child.once('close', (code) => resolve({ code, complaint })))
  }

  says(word: string): Promise<void> {
    return eventually(`the other one says ${word}`, () => this.said.includes(word), 60_000)
  }

  /** All holders say something when they hold, and nothing before. */
  holds(): Promise<void> {
    return eventually('the other one holds', () => this.said !== '', 60_000)
  }

  /** By the end of its input, or, of etcdctl, by a signal. */
  release(): void {
    this.#child.stdin?.end()
    if (this.#child.spawnfile === 'etcdctl') this.signal('SIGINT')
  }

  signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-(this.#child.pid ?? 0), signal)
    } catch {
      // It has ended.
    }
  }
}
