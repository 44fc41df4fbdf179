import { describe } from 'vitest'
import { missingPorcupine } from '../../scripts/porcupine.mjs'

/** `describe`; without Porcupine its tests are skipped, with the reason in the title. */
export function describeWithPorcupine(title: string, body: () => void): void {
  const reason = missingPorcupine()
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (skipped: ${reason})`, body)
}
