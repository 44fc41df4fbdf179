// The pages of the site, in the order of its sidebar. It stands alone, so that a test of the suite
// can compare it with docs/ without the tools of the site.
import { readdirSync, readFileSync } from 'node:fs'

const { exports } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/**
 * The reference: one page for each export of package.json. `source` is the file whose doc comments
 * it shows.
 */
export const REFERENCE = Object.entries(exports)
  .filter(([, entry]) => typeof entry === 'object')
  .map(([path, entry]) => {
    const name = path.replace(/^\./, 'holdfast')
    const source = entry.default.default.replace(/^\.\/dist\/cjs\//, 'src/').replace(/\.js$/, '.ts')
    return { name, source, page: `reference/${name}.md` }
  })

/** Written for the site: on GitHub the folder itself is the list. */
export const LIST_OF_DECISIONS = 'docs/decisions/README.md'

const DECISIONS = readdirSync(new URL('../docs/decisions', import.meta.url))
  .filter((name) => name.endsWith('.md'))
  .sort()
  .map((name) => {
    const page = `docs/decisions/${name}`
    const [, text = name] =
      /^# (.*)$/m.exec(readFileSync(new URL(`../${page}`, import.meta.url), 'utf8')) ?? []
    return { text, page }
  })

/** One page for each store that was proved. */
const PROOFS = readdirSync(new URL('../docs/proof', import.meta.url))
  .filter((name) => name.endsWith('.md') && name !== 'README.md')
  .sort()
  .map((name) => {
    const page = `docs/proof/${name}`
    const [, text = name] =
      /^# Proof: (.*)$/m.exec(readFileSync(new URL(`../${page}`, import.meta.url), 'utf8')) ?? []
    return { text, page }
  })

const at = (folder, pages) => pages.map(([text, name]) => ({ text, page: `${folder}${name}.md` }))

/** `page`: a Markdown file from the root of the repository. Those of the reference are generated. */
export const SIDEBAR = [
  {
    text: 'Start',
    items: [
      { text: 'Overview', page: 'README.md' },
      { text: 'Which primitive do I need?', page: 'docs/README.md' },
      { text: 'Three runs, with pictures', page: 'docs/three-runs.md' },
      { text: 'The client', page: 'docs/client.md' },
    ],
  },
  {
    text: 'Primitives',
    items: at('docs/', [
      ['Mutex', 'mutex'],
      ['Read-write lock', 'read-write-lock'],
      ['Semaphore', 'semaphore'],
      ['Several at once', 'multi-lock'],
      ['Striped lock', 'striped-lock'],
      ['Election', 'election'],
      ['Once', 'once'],
      ['Latch', 'latch'],
      ['Barrier', 'barrier'],
      ['Decorator', 'decorator'],
      ['Web Locks', 'web-locks'],
      ['The order of waiters', 'order'],
      ['Lingering', 'lingering'],
      ['Bounded lines', 'bounded-lines'],
    ]),
  },
  {
    text: 'Safety',
    items: at('docs/', [
      ['Fencing', 'fencing'],
      ['What is guaranteed', 'guarantees'],
      ['Errors', 'errors'],
      ['Closing a client', 'closing'],
    ]),
  },
  {
    text: 'Proof',
    collapsed: true,
    items: [{ text: 'What the locks survive', page: 'docs/proof/README.md' }, ...PROOFS],
  },
  {
    text: 'Stores',
    items: [
      { text: 'Which store should I use?', page: 'docs/guides/choosing-a-store.md' },
      ...at('docs/stores/', [
        ['Memory', 'memory'],
        ['SQLite', 'sqlite'],
        ['Redis and Valkey', 'redis'],
        ['PostgreSQL', 'postgres'],
        ['MySQL and MariaDB', 'mysql'],
        ['ZooKeeper', 'zookeeper'],
        ['etcd', 'etcd'],
        ['memcached', 'memcached'],
        ['A quorum', 'quorum'],
      ]),
      { text: 'Write your own', page: 'docs/conformance.md' },
    ],
  },
  {
    text: 'Guides',
    items: at('docs/guides/', [
      ['Fencing in ten lines', 'fencing-in-ten-lines'],
      ['Testing', 'testing'],
      ['Shutting down', 'shutdown'],
      ['Production checklist', 'production-checklist'],
      ['Troubleshooting', 'troubleshooting'],
      ['Comparison', 'comparison'],
    ]),
  },
  {
    text: 'Frameworks',
    items: at('docs/guides/frameworks/', [
      ['NestJS', 'nestjs'],
      ['Express and Fastify', 'express-and-fastify'],
      ['Jobs once per cluster', 'jobs'],
      ['Databases and ORMs', 'databases'],
      ['The same on MySQL', 'databases-mysql'],
      ['Next.js', 'nextjs'],
    ]),
  },
  {
    text: 'In operation',
    items: at('docs/', [
      ['The command line', 'cli'],
      ['The dashboard', 'dashboard'],
      ['The server', 'server'],
      ['See and change what is held', 'operator'],
      ['Metrics and traces', 'metrics'],
      ['Events', 'events'],
    ]),
  },
  {
    text: 'Other languages',
    items: at('docs/', [
      ['Locks over HTTP', 'http-api'],
      ['Sharing locks', 'sharing-locks'],
    ]),
  },
  {
    text: 'Moving from',
    collapsed: true,
    items: [
      { text: 'redlock', page: 'docs/redlock.md' },
      ...at('docs/guides/moving-from/', [
        ['redis-semaphore', 'redis-semaphore'],
        ['async-mutex', 'async-mutex'],
        ['proper-lockfile', 'proper-lockfile'],
        ['Redisson', 'redisson'],
        ['Curator', 'curator'],
        ['ShedLock', 'shedlock'],
        ['BullMQ', 'bullmq'],
      ]),
    ],
  },
  {
    text: 'API reference',
    collapsed: true,
    items: REFERENCE.map(({ name, page }) => ({ text: name, page })),
  },
  {
    text: 'The project',
    collapsed: true,
    items: [
      ...at('docs/', [
        ['How it works', 'design'],
        ['Versions', 'versioning'],
        ['Runtimes and servers', 'runtimes'],
        ['Publishing', 'publishing'],
      ]),
      { text: 'Changelog', page: 'CHANGELOG.md' },
      { text: 'Contributing', page: 'CONTRIBUTING.md' },
      { text: 'Security', page: 'SECURITY.md' },
    ],
  },
  {
    text: 'Decisions',
    collapsed: true,
    items: [{ text: 'All decisions', page: LIST_OF_DECISIONS }, ...DECISIONS],
  },
]

/** Where a page of the repository is on the site: a `README.md` is the first page of its folder. */
export function placeOf(page) {
  // The first page of the site is site/index.md.
  if (page === 'README.md') return 'overview.md'
  return page.replace(/(^|\/)README\.md$/, '$1index.md').replace(/^[A-Z]+\.md$/, (name) => name.toLowerCase())
}
