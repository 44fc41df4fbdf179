import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describeVersions } from './cases.js'

describeVersions(
  {
    name: 'SQLite',
    async start() {
      const folder = mkdtempSync(join(tmpdir(), 'holdfast-versions-'))
      return {
        url: `sqlite:${join(folder, 'locks.db')}`,
        stop: async () => rmSync(folder, { recursive: true, force: true }),
      }
    },
  },
  { inSuite: true },
)
