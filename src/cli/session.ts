import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { systemEnv } from '../base/env.js'

/**
 * The command leads a session of its own. Everything it starts belongs to that session, also what moves to another process
 * group (`timeout`, job control of a shell), unless it makes a session for itself as daemons do.
 *
 * `/proc` tells the members. Where there is none (macOS), the command's own process group stands for the session.
 */
interface ProcessStat {
  pid: number
  state: string
  group: number
  session: number
  /** In clock ticks since boot: together with the pid it names one process for ever. */
  started: string
}

const HAS_PROC = existsSync('/proc/self/stat')
const AFTER_KILL_MS = 2000
const LOOK_EVERY_MS = 25

/** When the process started, as an opaque text; '' where the system does not tell. */
export function startOf(pid: number): string {
  return readStat(pid)?.started ?? ''
}

/** The process groups of the session in which something still runs. Zombies run nothing. */
export function liveGroups(session: number, leaderHasEnded: boolean): number[] {
  if (!HAS_PROC) return send(session, 0) ? [session] : []
  const groups = new Set<number>()
  for (const entry of readdirSync('/proc')) {
    const stat = /^\d+$/.test(entry) ? readStat(Number(entry)) : undefined
    if (stat?.session !== session) continue
    // Our leader is gone, so a process of its number is a stranger's: the number has been given out anew.
    if (stat.pid === session && leaderHasEnded) return []
    if (stat.state !== 'Z' && stat.state !== 'X') groups.add(stat.group)
  }
  return [...groups]
}

/** Sends to one whole process group; false when it has nobody left, or nobody that we may signal. */
export function send(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch {
    return false
  }
}

/**
 * Ends whatever runs in the session: SIGTERM, after the grace SIGKILL; without a grace SIGKILL at once. Resolves when nothing is
 * left, or with false when something outlived even that (it belongs to another user, or hangs in the kernel).
 */
export async function endSession(
  session: number,
  graceMs: number,
  leaderHasEnded: () => boolean,
): Promise<boolean> {
  const look = () => liveGroups(session, leaderHasEnded())
  const toAll = (...signals: NodeJS.Signals[]) => {
    for (const group of look()) for (const signal of signals) send(group, signal)
  }
  // SIGCONT, as a stopped process would keep the SIGTERM for later.
  if (graceMs > 0) toAll('SIGTERM', 'SIGCONT')
  if (graceMs > 0 && (await isGoneWithin(graceMs, look))) return true
  const killUntilMs = systemEnv.now() + AFTER_KILL_MS
  do {
    toAll('SIGKILL') // again and again: what forked between the look and the signal is caught by the next
    if (await isGoneWithin(LOOK_EVERY_MS, look)) return true
  } while (systemEnv.now() < killUntilMs)
  return false
}

async function isGoneWithin(ms: number, look: () => number[]): Promise<boolean> {
  const untilMs = systemEnv.now() + ms
  while (look().length > 0) {
    const leftMs = untilMs - systemEnv.now()
    if (leftMs <= 0) return false
    await sleep(Math.min(leftMs, LOOK_EVERY_MS))
  }
  return true
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => systemEnv.timer(ms, resolve, { keepAlive: true }))
}

function readStat(pid: number): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // "pid (name) state ppid group session … started": the name may hold blanks and brackets, so count from the last one.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return {
      pid,
      state: fields[0] ?? '',
      group: Number(fields[2]),
      session: Number(fields[3]),
      started: fields[19] ?? '',
    }
  } catch {
    return undefined // it ended while we were reading, or there is no /proc
  }
}
