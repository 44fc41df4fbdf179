import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const endWithRun = fileURLToPath(new URL('test/servers/end-with-run.ts', import.meta.url))
const voidVerdicts = fileURLToPath(new URL('test/servers/void-verdicts.ts', import.meta.url))

/** These compute all the time, and would make the leases of others late. */
const BUSY = [
  'test/**/*simulation*.test.ts',
  'test/**/*histories*.test.ts',
  'test/stores/planted-*.test.ts',
  'test/server/ui/**/*.test.ts',
  'test/observe/grafana/*.test.ts',
  'test/soak/**/*.test.ts',
  'test/consumers/**/*.test.ts',
  'test/project/**/*.test.ts',
]

/** Each case makes three servers work, and two of them are databases. */
const DEMANDING = ['test/conformance/quorum-{databases,mixed}.test.ts']

/** These are short, and run for minutes. */
const LONG = /\/test\/(?:conformance\/|versions\/|.*-faults)/

/** Those that run the longest come first, so that none of them runs alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification): boolean => LONG.test(moduleId)
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export const shared = {
  globalSetup: [endWithRun],
  setupFiles: [endWithRun],
  // Real processes, real kills: each file gets a process of its own.
  pool: 'forks' as const,
  maxConcurrency: 12,
  // Only what hangs takes so long, also on a machine that others use.
  testTimeout: 180_000,
  hookTimeout: 300_000,
  // What must happen is waited for longer than a busy machine takes.
  expect: { poll: { timeout: 30_000 } },
}

/** A test is run again only where the machine stood still: see void-verdicts.ts. */
export const suite = { ...shared, setupFiles: [endWithRun, voidVerdicts], retry: { count: 3 } }

export default defineConfig({
  test: {
    // Seeds and figures that tests print are part of the record.
    printConsoleTrace: false,
    sequence: { sequencer: LongestFirst },
    projects: [
      // One after the other: `groupOrder`.
      { test: { ...suite, name: 'busy', include: BUSY, maxWorkers: 2, sequence: { groupOrder: 0 } } },
      {
        test: {
          ...suite,
          name: 'real time',
          include: ['test/**/*.test.ts'],
          exclude: [...BUSY, ...DEMANDING],
          // They mostly wait: for leases, for other processes. More of them starve each other.
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...suite,
          name: 'demanding',
          include: DEMANDING,
          maxConcurrency: 4,
          maxWorkers: 6,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
