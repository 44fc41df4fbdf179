import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../../src/testing/conformance/checks.js'

// Debian's python3-kazoo is seen by Debian's Python.
const PYTHON = '/usr/bin/python3'
const hasKazoo = spawnSync(PYTHON, ['-c', 'import kazoo']).status === 0
const JARS = '/usr/share/java'
const hasCurator = existsSync(`${JARS}/curator-recipes.jar`) && spawnSync('javac', ['-version']).status === 0
const CURATOR = ['curator-recipes', 'curator-framework', 'curator-client', 'zookeeper', 'guava', 'slf4j-nop']

/** Why a peer cannot be had here; null: it can. */
export const obstacles = {
  kazoo: hasKazoo ? null : 'python3-kazoo not installed',
  curator: hasCurator ? null : 'libcurator-recipes-java, or a JDK, not installed',
}

export function python(name: string): string[] {
  return [PYTHON, script(name)]
}

export function java(name: string): string[] {
  const classPath = CURATOR.map((jar) => `${JARS}/${jar}.jar`).join(':')
  return ['java', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', classPath, script(name)]
}

export function node(name: string): string[] {
  return [process.execPath, script(name)]
}

function script(name: string): string {
  return join(import.meta.dirname, name)
}

/** A process that takes part in a line, of another library or of ours. */
export class Peer {
  said = ''
  /** Its exit code, and what it complained about. */
  readonly ended: Promise<{ code: number | null; complaint: string }>
  readonly #child: ChildProcess

  constructor([program = '', ...args]: readonly string[], ...more: readonly string[]) {
    this.#child = spawn(program, [...args, ...more])
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

  goOn(): void {
    this.#child.stdin?.write('\n')
  }

  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' = 'SIGKILL'): void {
    this.#child.kill(signal)
  }
}
