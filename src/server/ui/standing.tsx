import { useEffect } from 'preact/hooks'
import type { SpaceOverview } from '../shapes.js'
import { Since } from './clock.js'
import { Empty } from './empty.js'
import { counted, countText, timeText } from './format.js'
import { PartyLine } from './party.js'
import { PermitBar } from './permits.js'
import { usePolled } from './polled.js'
import { Problem } from './problem.js'
import { hashOf } from './route.js'
import { useSession } from './session.js'
import { Text } from './text.js'

const EVERY_MS = 2000

/** Elections, jobs that run once, latches and barriers of the space. */
export function StandingView() {
  const { data, problem } = usePolled<SpaceOverview>('api/overview', EVERY_MS)
  useEffect(() => {
    document.title = 'Elections and jobs · Holdfast'
  }, [])
  const isEmpty =
    data !== null &&
    [data.elections, data.once, data.latches, data.barriers].every((list) => list.length === 0)
  return (
    <>
      <h1>Elections and jobs</h1>
      <Problem text={problem} />
      {isEmpty && (
        <Empty title="None yet">
          <p>Elections, jobs that run once, latches and barriers of this space appear here.</p>
        </Empty>
      )}
      {data && (
        <div class="cards">
          {data.elections.map((election) => (
            <ElectionCard key={election.name} election={election} />
          ))}
          {data.once.length > 0 && <Jobs jobs={data.once} />}
          {data.latches.length > 0 && <Latches latches={data.latches} />}
          {data.barriers.length > 0 && <Barriers barriers={data.barriers} />}
        </div>
      )}
    </>
  )
}

function ElectionCard({ election }: { election: SpaceOverview['elections'][number] }) {
  const { route } = useSession()
  const { name, leader, term, leaders, candidates } = election
  const line = hashOf({ view: 'resource', name: `election:${name}`, space: route.space })
  return (
    <section class="card election">
      <h2>
        <a href={line}>
          <Text value={name} class="code" most={80} />
        </a>
        <span class="badge election">election</span>
      </h2>
      <dl class="pairs">
        <dt>Leader</dt>
        <dd>{leader ? <PartyLine party={leader} /> : <span class="near">nobody</span>}</dd>
        {leader && (
          <>
            <dt>Leads for</dt>
            <dd>
              <Since ms={Date.parse(leader.since)} />
            </dd>
          </>
        )}
        <dt>Term</dt>
        <dd class="code">{term ?? '–'}</dd>
        <dt>Candidates</dt>
        <dd>{candidates.length === 0 ? 'nobody else' : `${countText(candidates.length)} in line`}</dd>
      </dl>
      {leaders.length > 0 && (
        <details>
          <summary>Last leaders</summary>
          <ol class="entries">
            {leaders.slice(0, 20).map((past) => (
              <li key={past.term}>
                {past.since && <time dateTime={past.since}>{timeText(past.since)}</time>}{' '}
                <Text value={past.id} most={80} /> <span class="faint">term {past.term}</span>
              </li>
            ))}
          </ol>
        </details>
      )}
    </section>
  )
}

function Jobs({ jobs }: { jobs: SpaceOverview['once'] }) {
  return (
    <section class="card">
      <h2>Jobs that run once</h2>
      <ul class="list">
        {jobs.map(({ name, running, last }) => (
          <li key={name}>
            <Text value={name} class="code" most={80} />
            <span class="right">
              {running ? (
                <>
                  <span class="mode writes">running</span> <PartyLine party={running} />
                </>
              ) : last ? (
                <>
                  <span class="faint">last run</span>
                  <time dateTime={last.began} title={`kept until ${timeText(last.keptUntil)}`}>
                    {timeText(last.began)}
                  </time>
                </>
              ) : (
                <span class="faint">no run known</span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Latches({ latches }: { latches: SpaceOverview['latches'] }) {
  return (
    <section class="card">
      <h2>Latches</h2>
      <ul class="list">
        {latches.map(({ name, total, count }) => (
          <li key={name}>
            <Text value={name} class="code" most={80} />
            <span class="right">
              {count === 0 ? 'open' : `${countText(count)} of ${counted(total, 'step')} to go`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function Barriers({ barriers }: { barriers: SpaceOverview['barriers'] }) {
  return (
    <section class="card">
      <h2>Barriers</h2>
      <ul class="list">
        {barriers.map(({ name, parties, here }) => (
          <li key={name}>
            <Text value={name} class="code" most={80} />
            <span class="right">
              {parties === null ? `${countText(here)} here` : <PermitBar used={here} capacity={parties} />}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
