import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, it } from 'vitest'

interface Sample {
  done: number
  rssMb: number
  heapMb: number
}

const folder = mkdtempSync(join(tmpdir(), 'holdfast-soak-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe.concurrent('many holds', () => {
  it.each([
    { url: 'memory:', cycles: 50_000 },
    { url: `sqlite:${join(folder, 'locks.db')}`, cycles: 20_000 },
  ])(
    'leave the memory flat and let the process end by itself on $url',
    async ({ url, cycles }) => {
      const script = join(import.meta.dirname, 'cycles.mjs')
      // The young generation is kept small: newer versions of Node let it grow by tens of
      // megabytes, which is no leak.
      const flags = ['--expose-gc', '--max-semi-space-size=8', '--no-warnings']
      const args = [...flags, script, url, String(cycles)]
      const { stdout } = await promisify(execFile)(process.execPath, args)
      const samples = stdout
        .trim()
        .split('\n')
        .map((line): Sample => JSON.parse(line))
      console.log(
        url.replace(folder, ''),
        samples.map(({ rssMb, heapMb }) => `${rssMb.toFixed(0)}/${heapMb.toFixed(1)}`).join(' '),
        'MB rss/heap',
      )
      // The first fifth warms up; after that, what a hold leaves behind would show as a steady rise.
      // Of two samples each: what a process has in reserve goes up and down.
      const [, warm, warmer, , late, latest] = samples as [Sample, Sample, Sample, Sample, Sample, Sample]
      const rise = (pick: (sample: Sample) => number): number =>
        Math.min(pick(late), pick(latest)) - Math.max(pick(warm), pick(warmer))
      expect(rise(({ heapMb }) => heapMb)).toBeLessThan(3)
      expect(rise(({ rssMb }) => rssMb)).toBeLessThan(30)
    },
    300_000,
  )
})
