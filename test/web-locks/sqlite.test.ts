import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

/** Store values of their own: they meet only in the file, as different processes do. */
runOn('sqlite', () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-web-locks-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'locks.db')
  return siteOn(() => sqlite(path), { url: `sqlite:${path}` })
})
