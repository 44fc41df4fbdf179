import { type Judgement, judge as judgeByBoth } from './judge/index.js'

/** What both judges say of a history. */
export interface Judged {
  /** What must not be: a sentence for each case. */
  readonly violations: readonly string[]
  /** How many operations Porcupine has judged; null: there is none here. */
  readonly porcupine: number | null
}

export function judge(file: string): Judged {
  const judgement = judgeByBoth(file)
  const { violations, porcupine, differences } = judgement
  const operations = porcupine.objects.reduce((sum, each) => sum + each.operations, 0)
  return {
    violations: [
      ...violations.map(
        ({ rule, object, text, records }) => `${object}: ${rule}: ${text}: ${JSON.stringify(records)}`,
      ),
      ...differences.map((difference) => `The judges differ on ${difference}`),
      ...undecided(judgement),
    ],
    porcupine: porcupine.verdict === 'skipped' ? null : operations,
  }
}

function undecided({ porcupine }: Judgement): string[] {
  if (porcupine.verdict !== 'undecided') return []
  const names = porcupine.objects.filter(({ verdict }) => verdict === 'undecided').map(({ name }) => name)
  return [`Porcupine could not decide: ${porcupine.reason ?? names.join(', ')}`]
}
