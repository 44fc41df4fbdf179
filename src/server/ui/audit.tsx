import { useEffect } from 'preact/hooks'
import type { AuditEntry } from '../shapes.js'
import { Empty } from './empty.js'
import { timeText } from './format.js'
import { usePolled } from './polled.js'
import { Problem } from './problem.js'
import { Text } from './text.js'

const EVERY_MS = 5000

/** Who changed what from this dashboard. */
export function AuditView() {
  const { data, problem } = usePolled<{ entries: AuditEntry[] }>('api/audit', EVERY_MS)
  useEffect(() => {
    document.title = 'Audit log · Holdfast'
  }, [])
  const entries = data?.entries ?? []
  return (
    <>
      <h1>Audit log</h1>
      <Problem text={problem} />
      {data && entries.length === 0 && (
        <Empty title="No changes yet">
          <p>Holds broken, waiters cancelled and semaphores resized from this server are listed here.</p>
        </Empty>
      )}
      {entries.length > 0 && (
        <section class="card">
          <table class="parties">
            <thead>
              <tr>
                <th>When</th>
                <th>Who</th>
                <th>Action</th>
                <th>Resource</th>
                <th>Detail</th>
                <th>Result</th>
              </tr>
            </thead>
            <tbody>
              {entries.map((entry) => (
                <tr key={`${entry.at}${entry.resource}${entry.action}`}>
                  <td data-title="When" class="code">
                    <time dateTime={entry.at}>{timeText(entry.at)}</time>
                  </td>
                  <td data-title="Who">
                    <Text value={entry.who ?? 'anyone'} most={80} />
                  </td>
                  <td data-title="Action">{entry.action}</td>
                  <td data-title="Resource">
                    <Text value={entry.resource} class="code" most={120} />
                  </td>
                  <td data-title="Detail">
                    <Text value={detailText(entry.detail)} most={120} />
                  </td>
                  <td data-title="Result">
                    <Text value={entry.result} most={120} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  )
}

function detailText(detail: unknown): string {
  if (detail === null || detail === undefined) return '–'
  if (typeof detail !== 'object') return String(detail)
  return Object.entries(detail)
    .map(([name, value]) => `${name} ${typeof value === 'object' ? JSON.stringify(value) : value}`)
    .join(', ')
}
