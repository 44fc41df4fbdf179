import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { systemEnv } from '../base/env.js'

/**
 * The command leads its own session. Every process it starts belongs to that session, also in
 * another process group (`timeout`, job control of a shell), unless it creates a session as daemons
 * do.
 *
 * `/proc` lists the members. Without it (macOS), the command's process group stands for the
 * session.
 */
interface ProcessStat {
  pid: number
  state: string
  group: number
  session: number
  /** In clock ticks since boot. Together with the pid it identifies one process for ever. */
  started: string
}

const HAS_PROC = existsSync('/proc/self/stat')
const AFTER_KILL_MS = 2000
const POLL_INTERVAL_MS = 25

/** When the process started, as opaque text; '' if the system does not say. */
export function startOf(pid: number): string {
  return readStat(pid)?.started ?? ''
}

/** The process groups of the session that have a running process. Zombies do not count. */
export function liveGroups(session: number, leaderHasEnded: boolean): number[] {
  if (!HAS_PROC) return send(session, 0) ? [session] : []
  const groups = new Set<number>()
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? readStat(Number(entry)) : undefined
    if (stat?.session !== session) continue
    // The command has ended, so this process is another one that got its pid.
    if (stat.pid === session && leaderHasEnded) return []
    if (stat.state !== 'Z' && stat.state !== 'X') groups.add(stat.group)
  }
  return [...groups]
}

/** Signals one process group; false if it is empty, or if we may signal none of its processes. */
export function send(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/**
 * Ends every process of the session: SIGTERM, after the grace period SIGKILL; without a grace
 * period SIGKILL at once. Resolves with false if a process outlived that: it belongs to another
 * user, or hangs in the kernel.
 */
export async function endSession(
  session: number,
  graceMs: number,
  leaderHasEnded: () => boolean,
): Promise<boolean> {
  const list = () => liveGroups(session, leaderHasEnded())
  const toAll = (...signals: NodeJS.Signals[]) => {
    for (const group of list()) for (const signal of signals) send(group, signal)
  }
  // A stopped process handles SIGTERM only after SIGCONT.
  if (graceMs > 0) toAll('SIGTERM', 'SIGCONT')
  if (graceMs > 0 && (await isGoneWithin(graceMs, list))) return true
  const killUntilMs = systemEnv.now() + AFTER_KILL_MS
  do {
    toAll('SIGKILL') // repeated, because a process may fork between the listing and the signal
    if (await isGoneWithin(POLL_INTERVAL_MS, list)) return true
  } while (systemEnv.now() < killUntilMs)
  return false
}

async function isGoneWithin(ms: number, list: () => number[]): Promise<boolean> {
  const untilMs = systemEnv.now() + ms
  while (list().length > 0) {
    const leftMs = untilMs - systemEnv.now()
    if (leftMs <= 0) return false
    await sleep(Math.min(leftMs, POLL_INTERVAL_MS))
  }
  return true
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => systemEnv.timer(ms, resolve, { keepAlive: true }))
}

function readStat(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // "pid (name) state ppid group session … started": the name may contain blanks and brackets.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return {
      pid,
      state: fields[0] ?? '',
      group: Number(fields[2]),
      session: Number(fields[3]),
      started: fields[19] ?? '',
    }
  } catch {
    return undefined // it ended meanwhile, or there is no /proc
  }
}
