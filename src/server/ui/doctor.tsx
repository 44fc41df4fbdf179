import { useEffect } from 'preact/hooks'
import { Empty } from './empty.js'
import { Icon } from './icons.js'
import { usePolled } from './polled.js'
import { Problem } from './problem.js'
import { visible } from './visible.js'

type DoctorFinding = { level: 'fine' | 'risk' | 'fault'; about: string; text: string }

/** The worst first. */
const LEVELS: readonly DoctorFinding['level'][] = ['fault', 'risk', 'fine']

/** What `holdfast doctor` finds in the live store. */
export function DoctorView() {
  const { data, problem, isBusy, load } = usePolled<{ findings: DoctorFinding[] }>('api/doctor', 0)
  useEffect(() => {
    document.title = 'Doctor · Holdfast'
  }, [])
  const findings = [...(data?.findings ?? [])].sort(
    (a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level),
  )
  return (
    <>
      <div class="title">
        <h1>Doctor</h1>
        <span class="state">{data && summary(findings)}</span>
        <button type="button" class="act" onClick={load} disabled={isBusy}>
          Check again
        </button>
      </div>
      <Problem text={problem} />
      {data && findings.length === 0 && (
        <Empty title="Nothing to check">
          <p>This store has no settings that could be wrong.</p>
        </Empty>
      )}
      <ul class="findings">
        {findings.map(({ level, about, text }) => (
          <li key={`${about}${text}`} class={level}>
            <Icon name={level} />
            <span class="level">{level}</span>
            <strong>{visible(about)}</strong>
            <span>{visible(text)}</span>
          </li>
        ))}
      </ul>
    </>
  )
}

function summary(findings: readonly DoctorFinding[]): string {
  const count = (level: string): number => findings.filter((finding) => finding.level === level).length
  const [faults, risks] = [count('fault'), count('risk')]
  if (faults + risks === 0) return 'All fine'
  return [faults > 0 ? `${faults} wrong` : '', risks > 0 ? `${risks} risky` : ''].filter(Boolean).join(', ')
}
