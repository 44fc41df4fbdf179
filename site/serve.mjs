// A host of static files as plain as it gets, on this machine only: a file, or the index of a folder.
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'

const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.md': 'text/markdown; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}

/** `base`: the path below which the site is. Port 0 is any free one. */
export async function serve(folder, { base = '/', port = 0 } = {}) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    try {
      if (!pathname.startsWith(base)) throw new Error('not of the site')
      const path = normalize(`/${decodeURIComponent(pathname.slice(base.length))}`)
      const file = path.endsWith('/') ? `${path}index.html` : path
      const content = await readFile(join(folder, file))
      response.setHeader('content-type', TYPES[extname(file)] ?? 'text/plain; charset=utf-8')
      response.end(content)
    } catch {
      response.writeHead(404).end('Not found')
    }
  })
  await new Promise((resolve, reject) => server.once('error', reject).listen(port, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() }
}
