import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import type { Route } from './router.js'

/** The files of the page. Nothing else is ever read. */
const FILES = [
  { path: '', file: 'index.html', type: 'text/html; charset=utf-8' },
  { path: 'app.js', file: 'app.js', type: 'text/javascript; charset=utf-8' },
  { path: 'app.css', file: 'app.css', type: 'text/css; charset=utf-8' },
] as const

const NOT_BUILT =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>Holdfast</title><p>The page is not built. The API is at <a href="api/info">api/info</a>.</p></html>'

interface PageFile {
  readonly body: string
  readonly etag: string
}

/** The routes of the page itself, which is no secret. */
export function pageRoutes(): Route[] {
  const read = new Map<string, PageFile>()
  return FILES.map(({ path, file, type }) => ({
    method: 'GET',
    path,
    access: 'anybody',
    answer: ({ request }) => {
      const { body, etag } = read.get(file) ?? readFile(file)
      read.set(file, { body, etag })
      const headers = { 'content-type': type, etag, 'cache-control': 'no-cache' }
      const isKnown = request.headers.get('if-none-match') === etag
      return isKnown ? new Response(null, { status: 304, headers }) : new Response(body, { headers })
    },
  }))
}

function readFile(file: string): PageFile {
  const body = firstReadable(folders().map((folder) => join(folder, file))) ?? missing(file)
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"` }
}

function missing(file: string): string {
  return file === 'index.html' ? NOT_BUILT : ''
}

function firstReadable(paths: readonly string[]): string | null {
  for (const path of paths) {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      // Try the next one.
    }
  }
  return null
}

/** Where the build puts the page: beside this file, or in the package that a bundler took apart. */
function folders(): string[] {
  const beside =
    typeof __dirname === 'string' ? [join(__dirname, '../../ui'), join(__dirname, '../../dist/ui')] : []
  return [...beside, ...installedFolder()]
}

function installedFolder(): string[] {
  try {
    const manifest = createRequire(join(process.cwd(), 'index.js')).resolve('holdfast/package.json')
    return [join(dirname(manifest), 'dist/ui')]
  } catch {
    return []
  }
}

let known: string | null = null

/** The version of this package; 'unknown' in a bundle without it. */
export function version(): string {
  known ??= readVersion()
  return known
}

function readVersion(): string {
  const manifests = folders().map((folder) => join(folder, '../../package.json'))
  for (const path of [...manifests, ...manifests.map((each) => join(each, '../../package.json'))]) {
    const text = firstReadable([path])
    const manifest: { name?: unknown; version?: unknown } = text === null ? {} : JSON.parse(text)
    if (manifest.name === 'holdfast' && typeof manifest.version === 'string') return manifest.version
  }
  return 'unknown'
}
