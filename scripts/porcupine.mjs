// Porcupine, the judge of histories that others wrote: how it gets into .cache/porcupine, through the
// Go proxy. `judge` and the tests ask here whether it is there.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './ensure.mjs'
import { FetchedFolder } from './fetched.mjs'
import { find } from './servers.mjs'

const BUILD_LIMIT_MS = 300_000
const source = join(root, 'proof/judge/porcupine')

function folder() {
  const files = readdirSync(source).map((file) => join(source, file))
  return new FetchedFolder('porcupine', 'built', files)
}

/** The program that judges. */
export function porcupineProgram() {
  return join(folder().path, 'porcupine')
}

/** null: it is here. Otherwise why it is not. */
export function missingPorcupine() {
  if (find('go') === null) return 'go not installed'
  const { state } = folder()
  if (state === 'current') return null
  return state === 'absent'
    ? 'porcupine not fetched from the Go proxy'
    : 'porcupine not built since it changed'
}

/** Fetches and builds it. Returns why it is missing still; null: it is here. */
export function ensurePorcupine() {
  let complaint = 'a program is missing'
  if (missingPorcupine() !== null && find('go') !== null)
    complaint = process.env['HOLDFAST_TEST_INSTALL'] === 'no' ? 'HOLDFAST_TEST_INSTALL is no' : build()
  const reason = missingPorcupine()
  return reason === null ? null : { name: 'porcupine', reason, explanation: `${reason} (${complaint})` }
}

/** Returns what went wrong, if anything. */
function build() {
  console.log('Fetching porcupine from the Go proxy, once …')
  const command = ['go', 'build', '-C', source, '-p', '1', '-o', porcupineProgram(), '.']
  return folder().fill([command], { limitMs: BUILD_LIMIT_MS })
}
