import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Crew } from './crew.mjs'

/** A folder and a crew for one demonstration. However this process ends, no worker and no file stays behind. */
export function openStage() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-demo-'))
  const crew = new Crew()
  process.on('exit', () => {
    crew.dismiss()
    // Again, if a worker has put a last file into it while it was killed.
    rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  })
  for (const [signal, number] of /** @type {const} */ ([
    ['SIGINT', 2],
    ['SIGTERM', 15],
    ['SIGHUP', 1],
  ]))
    process.on(signal, () => process.exit(128 + number))
  return { folder, crew }
}
