const TITLES = {
  crowd: '100 clients on 10,000 locks',
  line: '100,000 waiters for one lock',
  strict: 'A long line in strict order',
  renewals: 'A day of renewals',
  overload: 'More callers than can be served',
}

const COLUMNS = 100

const ABOUT = {
  all:
    'What the stores and their clients did under much load. Made by `npm run prove:load -- --report`, on two ' +
    'cores with everything on one machine. The figures say that nothing collapses, not how fast a store is.',
  crowd:
    'Four processes with 25 clients each take any of the locks and give it back, for a minute. The memory, ' +
    'the open files and the keys in the store must stop growing.',
  line:
    'The waiters of one client share a place in the store: that is the default order. All must be served, ' +
    'with fences that rise, and nothing may be left in the store.',
  strict:
    'Every waiter has a place of its own in the store. ZooKeeper, etcd and memcached are not made for ' +
    'very long lines, so theirs are shorter.',
  renewals:
    'As many renewals as 100 holds with the default lease need in a day, made in minutes by many holds with ' +
    'a short lease. None may be lost.',
  overload:
    'Five times as many callers come as can be served, and wait for two seconds. Without a bound, the lock ' +
    'comes to most of them when they are about to give up, so few are served. With `maxWaiters`, callers ' +
    'that find the line full are told at once, and the others are served. When the callers stop coming, the lock ' +
    'must be free again soon.',
}

/** The page about all results: `{ store: { scenario: { facts, faults, at, commit } } }`. */
export function pageOf(results) {
  const parts = Object.keys(TITLES).map((scenario) => section(scenario, results))
  return `# Proof: load

${wrapped(ABOUT.all)}

${parts.filter(Boolean).join('\n')}`
}

function section(scenario, results) {
  const seen = Object.entries(results).filter(([, scenarios]) => scenarios[scenario])
  if (seen.length === 0) return ''
  const rows = [...new Set(seen.flatMap(([, each]) => Object.keys(each[scenario].facts)))]
  const cells = (name) => seen.map(([, each]) => each[scenario].facts[name] ?? '')
  const line = (first, others) => `| ${[first, ...others].join(' | ')} |`
  return `## ${TITLES[scenario]}

${wrapped(ABOUT[scenario])}

${[
  line(
    '',
    seen.map(([store]) => store),
  ),
  line(
    '---',
    seen.map(() => '---'),
  ),
  ...rows.map((name) => line(name, cells(name))),
  line(
    'what must not be',
    seen.map(([, each]) => [...new Set(each[scenario].faults)].join('; ') || 'nothing'),
  ),
  line(
    'run on',
    seen.map(([, each]) => runOn(each[scenario])),
  ),
].join('\n')}
`
}

function runOn({ at, commit }) {
  return commit === undefined ? at : `${at}, ${commit}`
}

function wrapped(text) {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line !== '' && line.length + 1 + word.length > COLUMNS) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join('\n')
}
