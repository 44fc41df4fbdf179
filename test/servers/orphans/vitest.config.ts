import { defineConfig } from 'vitest/config'
import suite from '../../../vitest.config.js'

// A run of its own, which killed-run.test.ts ends in rude ways.
export default defineConfig({ test: { ...suite.test, include: ['test/servers/orphans/never-ends.ts'] } })
