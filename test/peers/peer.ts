import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { missingPeer, peerCommand } from '../../scripts/peers.mjs'
import { deferred } from '../../src/base/deferred.js'
import { inTime } from '../../src/testing/conformance/checks.js'

export type PeerName = 'ours' | 'redisson' | 'redis-py' | 'go'

/** null: it can be used here. Otherwise why not. */
export function peerObstacle(name: PeerName): string | null {
  return name === 'ours' ? null : missingPeer(name)
}

function commandOf(name: PeerName): readonly string[] {
  return name === 'ours' ? [process.execPath, join(import.meta.dirname, 'ours.mjs')] : peerCommand(name)
}

/**
 * A program of a peer, or of ours, that does what it is told over its standard input. A line is
 * `NUMBER TASK COMMAND ARGUMENTS`; the lines of one task are done one after the other, as by one
 * thread. The answer is `NUMBER ok VALUE` or `NUMBER error TEXT`. It ends with its input.
 */
export class PeerProcess {
  readonly #child: ChildProcess
  readonly #answers = new Map<number, { resolve(value: string): void; reject(error: Error): void }>()
  readonly #ready = deferred<void>()
  #numbers = 0
  #rest = ''

  private constructor(name: PeerName, port: number) {
    const [program = '', ...args] = commandOf(name)
    this.#child = spawn(program, [...args, String(port)], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child.stdin?.on('error', () => {})
    this.#child.stdout?.on('data', (text) => this.#read(String(text)))
    this.#child.on('close', () => {
      for (const { reject } of this.#answers.values()) reject(new Error(`${name} has ended`))
    })
  }

  static async start(name: PeerName, port: number): Promise<PeerProcess> {
    const peer = new PeerProcess(name, port)
    await inTime(`${name} ready`, peer.#ready.promise, 60_000)
    return peer
  }

  /** Rejects if the peer reports an error, or ends. */
  ask(task: string, command: string, ...args: (string | number)[]): Promise<string> {
    const number = ++this.#numbers
    const answer = deferred<string>()
    answer.promise.catch(() => {})
    this.#answers.set(number, answer)
    this.#child.stdin?.write(`${[number, task, command, ...args].join(' ')}\n`)
    return inTime(`the peer's answer to ${command} ${args.join(' ')}`, answer.promise, 60_000)
  }

  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL'): void {
    this.#child.kill(signal)
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, number, outcome, value = ''] = /^(\d+) (\w+) ?(.*)$/.exec(line) ?? []
      if (number === '0') this.#ready.resolve()
      const waiting = this.#answers.get(Number(number))
      this.#answers.delete(Number(number))
      if (outcome === 'ok') waiting?.resolve(value)
      else waiting?.reject(new Error(value))
    }
  }
}

/** Two files with one count, which only a lock keeps equal and exact. */
export class SharedCount {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-count-'))

  constructor() {
    for (const file of ['left', 'right']) writeFileSync(join(this.folder, file), '0')
  }

  get value(): number {
    const [left, right] = ['left', 'right'].map((file) =>
      Number(readFileSync(join(this.folder, file), 'utf8')),
    )
    if (left !== right) throw new Error(`half written: ${left} and ${right}`)
    return left ?? Number.NaN
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}
