import { memory } from '../../src/stores/memory/index.js'
import { runOn } from './run-on.js'
import { siteOn } from './site.js'

runOn('memory', () => {
  const store = memory()
  return siteOn(() => store)
})
