import { memory } from '../../src/stores/memory/index.js'
import { describeEvents } from './event-cases.js'

const shared = memory()

describeEvents('the memory store', () => shared)
