import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { peerCommand } from '../../../scripts/peers.mjs'
import { eventually } from '../../../src/testing/conformance/checks.js'

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
      ...[...peerCommand('etcd'), 'count', address, name, file, turns],
    ],
    hold: (address: string, name: string, ttl: string) => [
      ...[...peerCommand('etcd'), 'hold', address, name, ttl],
    ],
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
