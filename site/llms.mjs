// llms.txt: the list of the pages for language models (llmstxt.org), with a link to the Markdown of
// each. llms-full.txt: the pages for users in one file.
import { placeOf, SIDEBAR } from './sidebar.mjs'

const SUMMARY = `# Holdfast

> Distributed locks for TypeScript, on the store you already run: memory, SQLite, Redis, PostgreSQL,
> MySQL, ZooKeeper, etcd, memcached, or a quorum. With a fair line of waiters, renewal, a signal when
> a hold is lost, and a fencing token on every hold.

\`npm install holdfast\`, then \`await new Holdfast(sqlite('./locks.db')).mutex('order:42').run(work)\`.
`

/** Left out of llms-full.txt: they are long, and for maintainers or for looking things up. */
const NOT_IN_FULL = ['API reference', 'The project', 'Decisions']

/** `read(place)` gives the Markdown of a page. */
export function llms(read) {
  const sections = SIDEBAR.map(({ text, items }) => {
    const lines = items.map((item) => {
      const place = placeOf(item.page)
      return `- [${item.text}](${place})${about(read(place))}`
    })
    return `## ${text}\n\n${lines.join('\n')}\n`
  })
  return [SUMMARY, ...sections].join('\n')
}

export function llmsFull(read) {
  const pages = SIDEBAR.filter(({ text }) => !NOT_IN_FULL.includes(text)).flatMap(({ items }) => items)
  const texts = pages.map(({ page }) => `<!-- ${placeOf(page)} -->\n\n${read(placeOf(page)).trim()}\n`)
  return [SUMMARY, ...texts].join('\n')
}

/** The first sentence below the title, if the page begins with one. */
function about(text) {
  const [, paragraph = ''] = /^# .*\n\n((?!```)[^\n#|>*<[-][\s\S]*?)(?:\n\n|$)/.exec(text) ?? []
  const [sentence = ''] = /^.*?[.:](?=\s|$)/.exec(paragraph.replace(/\s+/g, ' ')) ?? []
  return sentence === '' ? '' : `: ${sentence.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/:$/, '.')}`
}
