import { afterAll, describe, it } from 'vitest'
import { sqlite } from '../../src/stores/sqlite/index.js'
import { storeHistories } from '../../src/testing/histories.js'
import { makeFolder } from './sqlite/helpers.js'

describe('generated histories on the SQLite store', () => {
  const folder = makeFolder()
  let files = 0
  const nextPath = (): string => {
    files += 1
    return folder.path(`${files}.db`)
  }
  afterAll(() => folder.remove())

  it('agree with the model while time passes', async () => {
    await storeHistories({ makeStore: (env) => sqlite(nextPath(), { env }), runs: 300 })
  })

  it('agree with the model on the clock of the machine', async () => {
    await storeHistories({ makeStore: () => sqlite(nextPath()), runs: 100, clock: 'server' })
  })
})
