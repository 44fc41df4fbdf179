import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needServer } from './availability.js'
import { freePort } from './ports.js'
import { Server, started } from './server.js'

export interface PrometheusServerOptions {
  /** What it scrapes, at `/metrics`: `['127.0.0.1:9464']`. */
  targets: readonly string[]
  scrapeMs: number
}

/** A series of a result. An instant query gives one point. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>
  /** Times in seconds, and values. */
  readonly points: readonly (readonly [number, number])[]
}

/** Times in seconds. */
export interface QueryRange {
  readonly start: number
  readonly end: number
  readonly step: number
}

interface Sampled {
  readonly metric: Record<string, string>
  readonly value?: [number, string]
  readonly values?: [number, string][]
}

/** One Prometheus, with the API that Grafana uses. */
export class PrometheusServer extends Server {
  constructor(port: number, { targets, scrapeMs }: PrometheusServerOptions) {
    const configFile = (server: Server): string => join(server.folder, 'prometheus.yml')
    super(
      {
        name: 'prometheus',
        command: (server) => [
          'prometheus',
          `--config.file=${configFile(server)}`,
          `--storage.tsdb.path=${server.dataFolder}`,
          `--web.listen-address=${server.address}`,
        ],
        layOut: async (server) => {
          const times = { scrape_interval: `${scrapeMs}ms`, scrape_timeout: `${scrapeMs}ms` }
          const scraped = { job_name: 'holdfast', static_configs: [{ targets }] }
          // JSON is YAML.
          writeFileSync(configFile(server), JSON.stringify({ global: times, scrape_configs: [scraped] }))
        },
        isReady: async (server) => (await fetch(`http://${server.address}/-/ready`)).ok,
      },
      port,
    )
  }

  /** Evaluates an expression at a time in seconds. */
  query(query: string, time?: number): Promise<Series[]> {
    return this.#evaluate('query', time === undefined ? { query } : { query, time: String(time) })
  }

  queryRange(query: string, { start, end, step }: QueryRange): Promise<Series[]> {
    const times = { start: String(start), end: String(end), step: String(step) }
    return this.#evaluate('query_range', { query, ...times })
  }

  /** The first value of the result, or null if it is empty. */
  async value(query: string, time?: number): Promise<number | null> {
    return (await this.query(query, time))[0]?.points[0]?.[1] ?? null
  }

  async labelValues(label: string, selector: string): Promise<string[]> {
    return (await this.#ask(`label/${label}/values`, { 'match[]': selector })) as string[]
  }

  async #evaluate(method: string, parameters: Record<string, string>): Promise<Series[]> {
    const { result } = (await this.#ask(method, parameters)) as { result: Sampled[] }
    return result.map(({ metric, value, values }) => ({
      labels: metric,
      points: (values ?? (value ? [value] : [])).map(([time, text]) => [time, Number(text)] as const),
    }))
  }

  async #ask(method: string, parameters: Record<string, string>): Promise<unknown> {
    const response = await fetch(`http://${this.address}/api/v1/${method}?${new URLSearchParams(parameters)}`)
    const answer = (await response.json()) as { status: string; error?: string; data: unknown }
    if (answer.status !== 'success') throw new Error(`${parameters['query']}: ${answer.error}`)
    return answer.data
  }
}

/** Starts a private Prometheus; ready in some 100 ms. It scrapes for the first time 5 s later. */
export async function startPrometheus(options: PrometheusServerOptions): Promise<PrometheusServer> {
  needServer('prometheus')
  return started(new PrometheusServer(await freePort(), options))
}
