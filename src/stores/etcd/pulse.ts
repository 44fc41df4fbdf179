import type { OperationResult } from '../../drivers/etcd/index.js'
import type { EtcdClaim } from './claim.js'
import type { EtcdLine } from './line.js'
import type { EtcdSpace } from './space.js'

/** How many lines one transaction asks for. */
const MOST_LINES = 100

/** Makes sure that what is known of the lines of these claims is true now, or reads them again. */
export async function verifyLines(space: EtcdSpace, claims: readonly EtcdClaim[]): Promise<void> {
  await Promise.all(claims.filter((claim) => claim.isUncertain).map((claim) => recover(claim)))
  const lines = [...new Set(claims.map(({ line }) => line))]
  const groups: EtcdLine[][] = []
  for (let from = 0; from < lines.length; from += MOST_LINES)
    groups.push(lines.slice(from, from + MOST_LINES))
  // Without lines it is just the question whether the servers answer.
  if (groups.length === 0) groups.push([])
  await Promise.all(groups.map((group) => verify(space, group)))
  for (const { line, state } of claims) {
    if (state !== 'waiting') continue
    line.watch()
    // The later fence that a claim asked for may not have come.
    line.settle()
  }
}

function recover(claim: EtcdClaim): Promise<void> {
  return claim.calls.run(async () => {
    if (claim.isUncertain) await claim.recover()
  })
}

async function verify({ client, names }: EtcdSpace, lines: readonly EtcdLine[]): Promise<void> {
  const digests = lines.map(
    ({ resource }) =>
      ({
        type: 'range',
        key: names.lineStart(resource),
        end: names.lineEnd(resource),
        limit: 1,
        sort: 'newest',
        keysOnly: true,
      }) as const,
  )
  const none = { type: 'range', key: names.states, limit: 1, keysOnly: true } as const
  const { header, results } = await client.transaction({ success: lines.length > 0 ? digests : [none] })
  const stale = lines.filter((line, index) => {
    const isNewer = line.revision > header.revision
    return !isNewer && line.rows.digest !== digestOf(results[index])
  })
  await Promise.all(stale.map((line) => line.read()))
}

/** As `LineRows.digest`. */
function digestOf(result: OperationResult | undefined): string {
  return `${result?.count ?? 0} ${result?.keys[0]?.modRevision ?? 0}`
}
