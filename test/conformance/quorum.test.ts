import { memory } from '../../src/stores/memory/index.js'
import { quorum } from '../../src/stores/quorum/index.js'
import { InterceptedStore } from '../../src/testing/conformance/intercepted-store.js'
import { CONFORMANCE_OPTIONS, found, QUORUM_LIMITS, QUORUM_SKIPS } from '../stores/quorum/conformance.js'
import { runCases, runStrictCases } from './run-cases.js'

const common = {
  oneProcess: 'the lines of a memory store are in one process',
  ...QUORUM_LIMITS,
}

const healthy = {
  ...common,
  name: 'a quorum of three memory stores',
  async open() {
    const members = [memory(), memory(), memory()]
    return { store: () => quorum(members, CONFORMANCE_OPTIONS), dispose: async () => {} }
  },
}
runCases(healthy, { part: 0, of: 7 }, QUORUM_SKIPS)
runStrictCases(healthy, { part: 2, of: 13 }, QUORUM_SKIPS)

const impaired = {
  ...common,
  name: 'a quorum of three memory stores, one of them cut off',
  async open() {
    const lost = new InterceptedStore(memory())
    const members = [memory(), lost, memory()]
    await found(quorum(members, CONFORMANCE_OPTIONS))
    lost.cut()
    return { store: () => quorum(members, CONFORMANCE_OPTIONS), dispose: async () => {} }
  },
}
runCases(impaired, { part: 1, of: 7 }, QUORUM_SKIPS)
runStrictCases(impaired, { part: 4, of: 13 }, QUORUM_SKIPS)
