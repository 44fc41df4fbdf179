import { describe, expect, it } from 'vitest'
import { expectNone, lineAt, type Source, sourceOf, sourcesIn } from './sources.js'

const MACHINE =
  /\b(?:Date\.now|performance\.now|process\.hrtime|process\.uptime|setTimeout|setInterval|setImmediate|scheduler\.(?:wait|yield)|Math\.random|randomUUID|randomBytes|randomInt|getRandomValues)\b|\bnew Date\(\s*\)|(?<!new )\bDate\(\s*\)/g

interface Exception {
  readonly path: string
  readonly uses: readonly string[]
  readonly reason: string
}

/**
 * The simulation must be able to replace all of it, so everything else gets it from an `Env`.
 * Nothing in `src/testing` is exempt as a whole: a simulated world that read a real clock would not
 * repeat itself, and the cases for real stores have `systemEnv`. What stands here cannot go through
 * an `Env`.
 */
const EXCEPTIONS: readonly Exception[] = [
  {
    path: 'src/base/env.ts',
    uses: ['process.hrtime', 'Date.now', 'Math.random', 'randomUUID', 'setTimeout', 'setInterval'],
    reason: 'the real machine behind systemEnv',
  },
  {
    path: 'src/server/ui/machine.ts',
    uses: ['Date.now', 'setTimeout', 'setInterval', 'Math.random'],
    reason: 'the page runs in a browser, where no Env is; the other files of the page ask this one',
  },
  {
    path: 'src/drivers/etcd/http2/socket.ts',
    uses: ['setImmediate'],
    reason: 'sends what was written in one turn of the event loop; a timer of 0 ms would cost one',
  },
  {
    path: 'src/stores/postgres/socket.ts',
    uses: ['setImmediate'],
    reason: 'comes right after what postgres.js does in this turn of the event loop',
  },
  {
    path: 'src/stores/sqlite/batches.ts',
    uses: ['setImmediate'],
    reason: 'lets the event loop turn once between two batches; a timer of 0 ms would cost one',
  },
  {
    path: 'src/testing/virtual-env.ts',
    uses: ['setImmediate'],
    reason: 'waits for promise reactions of the real event loop; virtual time stands still meanwhile',
  },
  {
    path: 'src/testing/histories/run.ts',
    uses: ['setImmediate'],
    reason: 'waits for promise reactions of the real event loop; virtual time stands still meanwhile',
  },
  {
    path: 'src/testing/conformance/flows.ts',
    uses: ['setImmediate', 'setInterval'],
    reason: 'its subject is the async flow that a timer carries on; the timers of an Env leave it',
  },
]

interface Use {
  readonly path: string
  readonly line: number
  readonly what: string
}

function usesOfMachine(sources: readonly Source[]): Use[] {
  return sources.flatMap(({ path, code }) =>
    [...code.matchAll(MACHINE)].map(({ 0: what, index }) => ({ path, line: lineAt(code, index), what })),
  )
}

function isExcepted({ path, what }: Use): boolean {
  return EXCEPTIONS.some((exception) => exception.path === path && exception.uses.includes(what))
}

describe('time, timers and chance', () => {
  it('come from an Env everywhere', () => {
    const findings = usesOfMachine(sourcesIn('src'))
      .filter((use) => !isExcepted(use))
      .map(({ path, line, what }) => `${path}:${line}: ${what}`)
    expectNone(findings, 'Take time, timers and chance from the Env (src/base/env.ts):')
  })

  it('have no exception that is no longer needed', () => {
    const uses = usesOfMachine(sourcesIn('src'))
    const idle = EXCEPTIONS.flatMap(({ path, uses: names }) =>
      names
        .filter((name) => !uses.some((use) => use.path === path && use.what === name))
        .map((name) => `${path}: ${name}`),
    )
    expectNone(idle, 'Remove these exceptions from test/project/time.test.ts:')
  })

  it('are noticed in code, and not in comments and strings', () => {
    const planted = [
      'const a = Date.now()',
      '// Date.now() in a comment',
      "const b = 'Math.random()'",
      'setTimeout(run, 1)',
      'const c = new Date()',
      'const d = new Date(wallMs)',
      `const e = \`\${Math.random()}\``,
      'const f = await setImmediate()',
    ].join('\n')
    const found = usesOfMachine([sourceOf('src/a.ts', planted)])
    expect(found.map(({ line, what }) => `${line}: ${what}`)).toEqual([
      '1: Date.now',
      '4: setTimeout',
      '5: new Date()',
      '7: Math.random',
      '8: setImmediate',
    ])
  })
})
