import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { EACH_ONCE, runCases, runStrictCases } from './run-cases.js'

const subject = {
  name: 'sqlite',
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'))
    const path = join(folder, 'locks.db')
    return {
      store: () => sqlite(path),
      url: `sqlite:${path}`,
      dispose: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
runCases(subject, EACH_ONCE)
runStrictCases(subject, { part: 2, of: 13 })
