import { memory } from '../../src/stores/memory/index.js'
import { runCases, runStrictCases } from './run-cases.js'

const subject = {
  name: 'memory',
  oneProcess: 'the lines of a memory store are in one process',
  async open() {
    const store = memory()
    return { store: () => store, dispose: async () => {} }
  },
}
runCases(subject)
runStrictCases(subject, { part: 0, of: 13 })
