import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadDriver } from '../../src/drivers/sqlite.js'
import { replaceFile } from '../../src/fence/index.js'
import { stateOf, until } from '../cli/processes.js'
import { pausedWorkerIsRefused, tempFolder, Worker } from './paused.js'

const CHILD = fileURLToPath(new URL('file-child.mjs', import.meta.url))
const SIDE = '.holdfast-fence.db'
const stale = (newestFence: number): object => ({ code: 'STALE_FENCE', newestFence })

function makeFile(): { folder: string; path: string; read(): string } {
  const folder = tempFolder()
  const path = join(folder, 'report.txt')
  return { folder, path, read: () => readFileSync(path, 'utf8') }
}

describe('replaceFile', () => {
  it('takes newer and equal fences, refuses older ones, and leaves nothing behind', async () => {
    const { folder, path, read } = makeFile()
    await replaceFile(5, path, 'a')
    await replaceFile({ resource: 'report', fence: 6 }, path, Buffer.from('b'))
    await replaceFile(6, path, 'c')
    await expect(replaceFile({ resource: 'report', fence: 5 }, path, 'late')).rejects.toMatchObject({
      ...stale(6),
      resource: 'report',
    })
    expect(read()).toBe('c')
    expect(readdirSync(folder).sort()).toEqual([SIDE, 'report.txt'])
  })

  it('knows a file by all its paths, and files apart', async () => {
    const { folder, path, read } = makeFile()
    const other = join(folder, 'other.txt')
    await replaceFile(6, path, 'newest')
    symlinkSync(path, join(folder, 'link.txt'))
    symlinkSync(folder, join(folder, 'here'))
    for (const detour of ['link.txt', 'here/report.txt', 'here/../report.txt'])
      await expect(replaceFile(5, join(folder, detour), 'late')).rejects.toMatchObject(stale(6))
    await replaceFile(7, join(folder, 'link.txt'), 'through the link')
    expect(read()).toBe('through the link')
    await replaceFile(1, other, 'another file')
    expect(readFileSync(other, 'utf8')).toBe('another file')
  })

  it('keeps the permissions', async () => {
    const { path } = makeFile()
    writeFileSync(path, 'secret')
    chmodSync(path, 0o640)
    await replaceFile(5, path, 'still secret')
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  it('takes another place for the side database', async () => {
    const { folder, path } = makeFile()
    mkdirSync(join(folder, 'fences'))
    const database = join(folder, 'fences/side.db')
    await replaceFile(6, path, 'a', { database })
    await expect(replaceFile(5, path, 'b', { database })).rejects.toMatchObject(stale(6))
    expect(readdirSync(folder).sort()).toEqual(['fences', 'report.txt'])
  })

  it('refuses what cannot be meant', async () => {
    const { folder, path } = makeFile()
    const wrong: Parameters<typeof replaceFile>[] = [
      [{ resource: 'r', fence: 5, isExclusive: false }, path, 'x'],
      [Number.NaN, path, 'x'],
      [5, '', 'x'],
      [5, folder, 'x'],
      [5, join(folder, 'missing/file'), 'x'],
      [5, path, 7 as never],
      [5, path, 'x', { wait: -1 }],
      [5, path, 'x', { database: join(folder, 'missing/side.db') }],
    ]
    for (const given of wrong)
      await expect(replaceFile(...given)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    expect(readdirSync(folder)).toEqual([])
  })

  it('waits for its turn, but not for ever', async () => {
    const { folder, path } = makeFile()
    await replaceFile(5, path, 'a')
    const other = (await loadDriver()).open(join(folder, SIDE))
    onTestFinished(() => other.close())
    other.exec('BEGIN IMMEDIATE')
    await expect(replaceFile(6, path, 'b', { wait: 50 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      retryable: true,
    })
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([])
    const waiting = replaceFile(6, path, 'c')
    other.exec('COMMIT')
    await waiting
    expect(readFileSync(path, 'utf8')).toBe('c')
  })
})

describe('a writer that is', () => {
  it.each([
    ['killed after', '7'],
    ['killed before', '5'],
  ])('%s the rename leaves no way for a stale one', async (trouble, left) => {
    const { path, read } = makeFile()
    await replaceFile(5, path, '5 first')
    const child = new Worker(CHILD, { path, fences: [7], trouble })
    await child.ended
    expect(child.process.signalCode).toBe('SIGKILL')
    expect(read().split(' ')[0]).toBe(left)
    await expect(replaceFile(6, path, 'late')).rejects.toMatchObject(stale(7))
    await replaceFile(7, path, 'again')
    await replaceFile(8, path, 'next')
    expect(read()).toBe('next')
  })
})

describe('a writer that is stopped between check and rename', () => {
  it.each(['DELETE', 'WAL'])('lets nobody pass, journal mode %s', async (mode) => {
    const { folder, path, read } = makeFile()
    await replaceFile(5, path, '5 first')
    const side = (await loadDriver()).open(join(folder, SIDE))
    side.prepare(`PRAGMA journal_mode = ${mode}`).get()
    side.close()
    const child = new Worker(CHILD, { path, fences: [6], trouble: 'stopped before' })
    await until('the child is stopped', () => stateOf(child.process.pid ?? 0) === 'T')
    await expect(replaceFile(7, path, '7 newer', { wait: 50 })).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
    })
    child.process.kill('SIGCONT')
    expect(await child.ended).toBe(0)
    expect(read().split(' ')[0]).toBe('6')
    await replaceFile(7, path, '7 newer')
    await expect(replaceFile(6, path, 'late')).rejects.toMatchObject(stale(7))
    expect(read()).toBe('7 newer')
  })
})

describe('writers that race', () => {
  it('leave the newest, and the file never goes back', async () => {
    const { folder, path, read } = makeFile()
    await replaceFile(1, path, '1 x')
    const all = Array.from({ length: 60 }, (_, index) => index + 2)
    const children = [0, 1, 2].map(
      (rest) => new Worker(CHILD, { path, fences: all.filter((n) => n % 3 === rest) }),
    )
    const codes = Promise.all(children.map((child) => child.ended))
    const ended = codes.then(() => 'ended')
    const seen = [1]
    while ((await Promise.race([ended, new Promise((resolve) => setImmediate(resolve))])) !== 'ended') {
      const fence = Number(read().split(' ')[0])
      if (fence !== seen.at(-1)) seen.push(fence)
    }
    expect(await codes).toEqual([0, 0, 0])
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(read().split(' ')[0]).toBe('61')
    expect(readdirSync(folder).sort()).toEqual([SIDE, 'report.txt'])
    console.log(`the file was seen under ${seen.length} of ${all.length + 1} fences`)
  })
})

it('a paused worker is stopped', async () => {
  const { path, read } = makeFile()
  await pausedWorkerIsRefused({ kind: 'file', path }, async () => read())
})
