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
): Promise<{ heal(): void }> {
  const rules = SIDES[way].map((side) => [
    'INPUT',
    ...['-i', 'lo', '-p', 'tcp', side, String(port)],
    ...(peerPort === undefined ? [] : [side === '--dport' ? '--sport' : '--dport', String(peerPort)]),
    ...(probability < 1 ? ['-m', 'statistic', '--mode', 'random', '--probability', String(probability)] : []),
    ...['-j', 'DROP'],
  ])
  const heals: (() => void)[] = []
  for (const rule of rules) {
    const { child, revoke } = runWithWill(
      ['iptables', '-w', '-I', ...rule],
      `iptables -w -D ${rule.join(' ')}`,
    )
    const [code] = await once(child, 'exit')
    if (code !== 0) throw new Error(`iptables ended with ${code}`)
    heals.push(() => {
      execFileSync('iptables', ['-w', '-D', ...rule])
      revoke()
    })
  }
  return {
    heal() {
      for (const heal of heals.splice(0)) heal()
    },
  }
}
