import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Share, Skips } from '../conformance/run-cases.js'

const run = promisify(execFile)
const PROGRAM = join(import.meta.dirname, 'run-cases.mjs')
const LIMIT_MS = 1_200_000

export type StoreName =
  | 'memory'
  | 'sqlite'
  | 'redis'
  | 'postgres'
  | 'mysql'
  | 'zookeeper'
  | 'etcd'
  | 'memcached'
  | 'quorum'

/** What a process of run-cases.mjs is told. */
export interface Plan {
  readonly store: StoreName
  /** The servers; of a quorum its members. */
  readonly urls: readonly string[]
  /** Of the store. */
  readonly options: Readonly<Record<string, string>>
  /** What the store cannot do, with the reasons: `locksOnly`, `fixedFences`. */
  readonly limits: Readonly<Record<string, string>>
  readonly skips: Skips
  readonly share: Share
}

/** What it answers. */
export interface Outcome {
  /** How many were run; with those that only passed at the second attempt. */
  readonly cases: number
  readonly passed: number
  /** The titles of those that only passed at the second attempt. */
  readonly again: readonly string[]
  readonly failed: readonly string[]
  /** How many were not run, by reason. */
  readonly skipped: Readonly<Record<string, number>>
}

/** How to start a program: see scripts/runtimes.mjs. */
export interface Runtime {
  readonly execPath: string
  readonly execArgv: readonly string[]
}

/** Runs the conformance suite in a process of that runtime. */
export async function runPlan(plan: Plan, { execPath, execArgv }: Runtime): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-plan-'))
  const [planFile, resultFile] = [join(folder, 'plan.json'), join(folder, 'result.json')]
  try {
    writeFileSync(planFile, JSON.stringify(plan))
    const options = { timeout: LIMIT_MS, killSignal: 'SIGKILL', maxBuffer: 2 ** 26 } as const
    const said = await run(execPath, [...execArgv, PROGRAM, planFile, resultFile], options).catch(
      (error: { stderr: string; message: string }) => ({ stderr: `${error.stderr}${error.message}` }),
    )
    if (said.stderr) console.error(said.stderr.slice(-20_000))
    return JSON.parse(readFileSync(resultFile, 'utf8')) as Outcome
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
