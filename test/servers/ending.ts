import { onTestFinished } from 'vitest'

/** Stops what a test has started when the test ends, the last one first. */
export function ending<T extends { stop(): Promise<void> }>(started: T): T {
  onTestFinished(() => started.stop())
  return started
}
