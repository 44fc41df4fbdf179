import { describe, type TestOptions } from 'vitest'
import { missingPorcupine } from '../../scripts/porcupine.mjs'

/** `describe`; without Porcupine its tests are skipped, with the reason in the title. */
export function describeWithPorcupine(title: string, body: () => void, options: TestOptions = {}): void {
  const reason = missingPorcupine()
  const told = reason === null ? title : `${title} (skipped: ${reason})`
  describe.skipIf(reason !== null)(told, options, body)
}
