import type { Finding } from '../index.js'
import { readArguments, STORE_OPTIONS } from './arguments.js'
import { EXIT } from './exit-codes.js'
import { usageError } from './failures.js'
import { openLocks } from './store.js'
import { printableJson, table } from './table.js'

const OPTIONS = { ...STORE_OPTIONS, json: { type: 'boolean' }, strict: { type: 'boolean' } } as const
/** The worst first. */
const LEVELS: readonly Finding['level'][] = ['fault', 'risk', 'fine']

/** Inspects the live store and prints the findings. */
export async function doctor(args: string[]): Promise<number> {
  const { values, positionals } = readArguments('doctor', args, OPTIONS)
  if (positionals.length > 0) throw usageError('doctor takes no NAME', 'doctor')
  const locks = await openLocks(values)
  let findings: Finding[]
  try {
    findings = await locks.check()
  } finally {
    await locks.close()
  }
  findings.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level))
  process.stdout.write(`${values.json ? printableJson(findings, 2) : asText(findings)}\n`)
  const isReported = ({ level }: Finding): boolean =>
    level === 'fault' || (values.strict === true && level === 'risk')
  return findings.some(isReported) ? EXIT.findings : EXIT.ok
}

function asText(findings: readonly Finding[]): string {
  if (findings.length === 0) return 'This store has nothing to check.'
  return table(
    ['LEVEL', 'ABOUT', 'FINDING'],
    findings.map(({ level, about, text }) => [level, about, text]),
  )
}
