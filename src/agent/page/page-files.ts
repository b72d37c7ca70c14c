import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fileURLToPath } from 'node:url'

/** The page's files are served as written: they lie beside the sources, in the package and in the executable alike. */
const FOLDER = fileURLToPath(new URL('../../../src/agent/page/files', import.meta.url))

/** Every file of the page by its path in a URL; nothing else is served. */
const FILES = {
  '/': ['index.html', 'text/html; charset=utf-8'],
  '/page/page.css': ['page.css', 'text/css; charset=utf-8'],
  '/page/wall.css': ['wall.css', 'text/css; charset=utf-8'],
  '/page/page.js': ['page.js', 'text/javascript; charset=utf-8'],
  '/page/connection.js': ['connection.js', 'text/javascript; charset=utf-8'],
  '/page/elements.js': ['elements.js', 'text/javascript; charset=utf-8'],
  '/page/format.js': ['format.js', 'text/javascript; charset=utf-8'],
  '/page/figures.js': ['figures.js', 'text/javascript; charset=utf-8'],
  '/page/list.js': ['list.js', 'text/javascript; charset=utf-8'],
  '/page/uplot.js': ['uplot.js', 'text/javascript; charset=utf-8'],
  '/page/curves.js': ['curves.js', 'text/javascript; charset=utf-8'],
  '/page/heat.js': ['heat.js', 'text/javascript; charset=utf-8'],
  '/page/boards.js': ['boards.js', 'text/javascript; charset=utf-8'],
  '/page/tiles.js': ['tiles.js', 'text/javascript; charset=utf-8'],
  '/page/nodes.js': ['nodes.js', 'text/javascript; charset=utf-8'],
  '/page/wall.js': ['wall.js', 'text/javascript; charset=utf-8'],
  '/page/troubles.js': ['troubles.js', 'text/javascript; charset=utf-8'],
  '/page/overview.js': ['overview.js', 'text/javascript; charset=utf-8'],
  '/page/datasets.js': ['datasets.js', 'text/javascript; charset=utf-8'],
  '/page/report.js': ['report.js', 'text/javascript; charset=utf-8'],
  '/page/records.js': ['records.js', 'text/javascript; charset=utf-8'],
} as const

/** Only this agent's own files may run, load or be requested, and no site may frame the page. */
const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Headers of the answers to the page's requests. */
export const PAGE_DATA_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
}

const read = new Map<string, { readonly bytes: Buffer; readonly etag: string }>()

/** Sends a file of the page; 404 if there is no file at `path`. */
export function sendPageFile(path: string, request: IncomingMessage, response: ServerResponse): void {
  const found = Object.hasOwn(FILES, path) ? FILES[path as keyof typeof FILES] : undefined
  if (!found) {
    response.writeHead(404, PAGE_DATA_HEADERS).end()
    return
  }
  const [name, type] = found
  const file = read.get(name) ?? load(name)
  read.set(name, file)
  const headers = { ...HEADERS, etag: file.etag, 'cache-control': 'no-cache' }
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304, headers).end()
    return
  }
  response.writeHead(200, { ...headers, 'content-type': type, 'content-length': file.bytes.length })
  response.end(request.method === 'HEAD' ? undefined : file.bytes)
}

/** Matches the paths of all files, and of some that do not exist. */
export const PAGE_PATH = /^(\/|\/page\/[a-z]+\.(?:css|js))$/

function load(name: string) {
  const bytes = readFileSync(`${FOLDER}/${name}`)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
