import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { serverAvailability } from './availability.js'
import { runWithWill } from './last-will.js'

const SIDES = { both: ['--dport', '--sport'], to: ['--dport'], from: ['--sport'] } as const

/** null: packets can be dropped here. Otherwise why not. */
export function packetLossAvailability(): string | null {
  if (process.getuid?.() !== 0) return 'dropping packets needs root'
  const reason = serverAvailability('iptables')
  if (reason !== null) return reason
  try {
    execFileSync('iptables', ['-w', '-S', 'INPUT'], { stdio: 'ignore' })
    return null
  } catch {
    return 'iptables may not be used here'
  }
}

export interface PacketLoss {
  /** Ends it. Returns how many packets were dropped. */
  heal(): number
}

/**
 * Drops packets to and from a port of this machine at random: `0.3` is three in ten, `1` is all of
 * them. With `peerPort`, only those of the connection with that port at its other end. `way`: only
 * those to the port, or only those from it. The rules go when `heal` is called, and also when this
 * process dies without calling it.
 */
export async function dropPackets(
  port: number,
  probability: number,
  peerPort?: number,
  way: keyof typeof SIDES = 'both',
): Promise<PacketLoss> {
  const rules = SIDES[way].map((side) => [
    'INPUT',
    ...['-i', 'lo', '-p', 'tcp', side, String(port)],
    ...(peerPort === undefined ? [] : [side === '--dport' ? '--sport' : '--dport', String(peerPort)]),
    ...(probability < 1 ? ['-m', 'statistic', '--mode', 'random', '--probability', String(probability)] : []),
    ...['-j', 'DROP'],
  ])
  const heals: (() => number)[] = []
  for (const rule of rules) {
    const { child, revoke } = runWithWill(
      ['iptables', '-w', '-I', ...rule],
      `iptables -w -D ${rule.join(' ')}`,
    )
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`iptables ended with ${code}`)
    heals.push(() => {
      const count = droppedBy(rule)
      execFileSync('iptables', ['-w', '-D', ...rule])
      revoke()
      return count
    })
  }
  return { heal: () => heals.splice(0).reduce((count, heal) => count + heal(), 0) }
}

/** `iptables -v -S` writes the ports of a rule in its own order, and `-c PACKETS BYTES` behind them. */
function droppedBy(rule: readonly string[]): number {
  const ports = ['--sport', '--dport'].flatMap((side) =>
    rule.includes(side) ? [side, rule[rule.indexOf(side) + 1]] : [],
  )
  const line = new RegExp(`-m tcp ${ports.join(' ')} (?:-m .*)?-c (\\d+) `)
  const rules = execFileSync('iptables', ['-w', '-v', '-S', 'INPUT'], { encoding: 'utf8' })
  return Number(line.exec(rules)?.[1] ?? 0)
}
