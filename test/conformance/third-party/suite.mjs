// A third party's run of the suite: the built package, another test runner, a URL of its own. Cases of every kind, not all of them.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { conformanceCases } from 'holdfast/testing'
import makeStore from './make-store.mjs'

const CHOSEN = [
  'a second contender waits until the first one releases',
  'a push that overtakes the reply to its claim is taken',
  'a claim that would be one waiter too many is refused, and leaves nothing behind',
  'whether a lock is held, and by which process, is seen from every process',
  'a process that holds a lock and has nothing else to do ends by itself',
]

const cases = conformanceCases({
  name: 'elsewhere',
  storeModule: new URL('make-store.mjs', import.meta.url).href,
  async open() {
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-elsewhere-'))
    const url = `elsewhere:${join(folder, 'locks.db')}`
    return { store: () => makeStore(url), url, dispose: () => rm(folder, { recursive: true, force: true }) }
  },
})

for (const { title, skip, run } of cases)
  if (CHOSEN.includes(title)) test(title, { skip: skip ?? false }, run)
