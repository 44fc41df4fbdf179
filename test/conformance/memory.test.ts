import { memory } from '../../src/stores/memory/index.js'
import { runCases } from './run-cases.js'

runCases({
  name: 'memory',
  oneProcess: 'the lines of a memory store are in one process',
  async open() {
    const store = memory()
    return { store: () => store, dispose: async () => {} }
  },
})
