import { defineConfig } from 'vitest/config'
import { shared } from '../../../vitest.config.js'

// A run of its own, which killed-run.test.ts ends in rude ways.
export default defineConfig({ test: { ...shared, include: ['test/servers/orphans/never-ends.ts'] } })
