import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const endWithRun = fileURLToPath(new URL('test/servers/end-with-run.ts', import.meta.url))

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: [endWithRun],
    setupFiles: [endWithRun],
    // Real processes, real kills: each file gets a process of its own.
    pool: 'forks',
    // The tests mostly wait: for leases, for other processes.
    maxWorkers: 3,
    maxConcurrency: 10,
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // What must happen is waited for longer than a busy machine takes.
    expect: { poll: { timeout: 30_000 } },
    // Seeds and figures that tests print are part of the record.
    printConsoleTrace: false,
  },
})
