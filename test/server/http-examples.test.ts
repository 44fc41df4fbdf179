import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Bench } from '../cli/processes.js'
import { root } from '../project/sources.js'
import { TOKEN } from './dashboards.js'

interface Language {
  readonly name: string
  readonly file: string
  /** Each program that it needs, with the arguments by which it is found. */
  readonly needs: readonly (readonly [program: string, argument: string])[]
  readonly command: (file: string) => readonly [program: string, ...args: string[]]
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'sh',
    file: 'example.sh',
    needs: [['curl', '--version']],
    command: (file) => ['/bin/sh', file],
  },
  {
    name: 'python',
    file: 'example.py',
    needs: [['python3', '--version']],
    command: (file) => ['python3', file],
  },
  { name: 'go', file: 'example.go', needs: [['go', 'version']], command: (file) => ['go', 'run', file] },
]

/** The example of the page in that language, and what it prints. */
function exampleIn(language: string): { code: string; output: string } {
  const page = readFileSync(join(root, 'docs/http-api.md'), 'utf8')
  const pattern = new RegExp(`\`\`\`${language} run\\n([\\s\\S]*?)\`\`\`\\s*\`\`\`text\\n([\\s\\S]*?)\`\`\``)
  const [, code, output] = pattern.exec(page) ?? []
  if (code === undefined || output === undefined) throw new Error(`no example in ${language}`)
  return { code, output }
}

function missing(needs: Language['needs']): string | null {
  for (const [program, argument] of needs) {
    try {
      execFileSync(program, [argument], { stdio: 'ignore' })
    } catch {
      return program
    }
  }
  return null
}

describe('the examples of the lock API', () => {
  for (const { name, file, needs, command } of LANGUAGES) {
    const lacking = missing(needs)
    const title = lacking === null ? name : `${name} (skipped: ${lacking} is missing)`
    it.skipIf(lacking !== null)(
      `${title} runs and prints what the page says`,
      { timeout: 600_000 },
      async () => {
        const bench = new Bench()
        const { code, output } = exampleIn(name)
        const server = bench.holdfast(['serve', '--port', '0', '--allow-locks'], { HOLDFAST_TOKEN: TOKEN })
        const [, url = ''] = await server.wrote(/ at (http:\S+)\/\n/)
        writeFileSync(bench.path(file), code)
        const [program, ...args] = command(bench.path(file))
        const env = { HOLDFAST_URL: url, HOLDFAST_TOKEN: TOKEN, HOME: process.env['HOME'] }
        const outcome = await bench.start(program, args, env).done
        expect(outcome).toMatchObject({ code: 0, stdout: output, stderr: '' })
      },
    )
  }
})
