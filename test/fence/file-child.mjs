/**
 * A process that replaces a file under each of the given fences, some of which may be too old by then.
 * `trouble` comes inside the transaction of the rename: 'killed before', 'killed after' (SIGKILL), 'stopped before' (SIGSTOP).
 */
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { replaceFile } from 'holdfast/fence'

const { path, fences, trouble } = JSON.parse(process.argv[2] ?? '')

if (trouble) {
  const rename = fs.renameSync
  fs.renameSync = (from, to) => {
    if (trouble === 'killed after') rename(from, to)
    process.kill(process.pid, trouble === 'stopped before' ? 'SIGSTOP' : 'SIGKILL')
    rename(from, to)
  }
  syncBuiltinESMExports()
}

let refused = 0
for (const fence of fences) {
  try {
    await replaceFile(fence, path, `${fence} ${'x'.repeat(100_000)}`)
  } catch (error) {
    if (/** @type {any} */ (error).code !== 'STALE_FENCE') throw error
    refused += 1
  }
}
process.send?.({ refused })
process.disconnect?.()
