import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { basename } from 'node:path'
import { fileURLToPath } from 'node:url'
import { unlessCode } from '../../failure/unless-code.js'

/** The page's files are served as written: they lie beside the sources, in the package and in the executable alike. */
const FOLDER = fileURLToPath(new URL('../../../src/agent/page/files', import.meta.url))

/** Matches the paths of all files, and of some that do not exist. */
export const PAGE_PATH = /^(\/|\/page\/[a-z]+\.(?:css|js))$/

const TYPES = { html: 'text/html', css: 'text/css', js: 'text/javascript' } as const

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

/** Answers with the page's file at `path`, which must match `PAGE_PATH`, or with 404. */
export function sendPageFile(path: string, request: IncomingMessage, response: ServerResponse): void {
  const name = path === '/' ? 'index.html' : basename(path)
  const file = read.get(name) ?? unlessCode(['ENOENT'], () => load(name))
  if (file === undefined) {
    response.writeHead(404, PAGE_DATA_HEADERS).end()
    return
  }
  read.set(name, file)
  const type = `${TYPES[name.split('.')[1] as keyof typeof TYPES]}; charset=utf-8`
  const headers = { ...HEADERS, etag: file.etag, 'cache-control': 'no-cache' }
  if (request.headers['if-none-match'] === file.etag) {
    response.writeHead(304, headers).end()
    return
  }
  response.writeHead(200, { ...headers, 'content-type': type, 'content-length': file.bytes.length })
  response.end(request.method === 'HEAD' ? undefined : file.bytes)
}

function load(name: string) {
  const bytes = readFileSync(`${FOLDER}/${name}`)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}
