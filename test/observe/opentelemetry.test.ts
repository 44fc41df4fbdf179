import { memory } from '../../src/stores/memory/index.js'
import { describeTelemetry } from './opentelemetry-cases.js'

const shared = memory()

describeTelemetry('the memory store', () => shared)
