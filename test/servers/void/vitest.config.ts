import { defineConfig } from 'vitest/config'
import { suite } from '../../../vitest.config.js'

// A run of its own, with failures that void-verdicts.test.ts wants to see.
export default defineConfig({ test: { ...suite, include: ['test/servers/void/fails.ts'] } })
