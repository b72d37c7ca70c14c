import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { makeCertificate } from '../testing/certificate.js'
import { listenLocally } from '../testing/listen-locally.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { askOnce, type Question } from './ask-once.js'

const QUESTION: Question = {
  token: undefined,
  ca: undefined,
  signal: undefined,
  connectTimeoutMs: 5000,
  silenceMs: 5000,
}

async function serve(
  context: TestContext,
  answer: RequestListener,
  certificate?: { readonly certFile: string; readonly keyFile: string },
): Promise<string> {
  const server = certificate
    ? createTlsServer(
        { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) },
        answer,
      )
    : createServer(answer)
  const port = await listenLocally(server, context)
  return `${certificate ? 'https' : 'http'}://127.0.0.1:${port}`
}

test('a question brings its token and body, and its answer can be read', async (context) => {
  const url = await serve(context, async (request, response) => {
    const said = [request.method, request.url, request.headers.authorization, await text(request)]
    response.writeHead(201).end(said.join(' '))
  })
  const body = [new TextEncoder().encode('hel'), new TextEncoder().encode('lo')]
  const answer = await askOnce(`${url}/a?b=1`, { ...QUESTION, method: 'POST', token: 'secret', body })
  assert.equal(answer.statusCode, 201)
  assert.equal(await text(answer), 'POST /a?b=1 Bearer secret hello')
})

test('a server that says nothing, or nothing more, fails the question after the silence', async (context) => {
  const url = await serve(context, (request, response) => {
    if (request.url === '/half') response.write('half')
  })
  const question = { ...QUESTION, silenceMs: 50 }
  const silent = { code: 'SILENT', message: 'no byte for 0.05 s' }
  await assert.rejects(askOnce(`${url}/`, question), silent)
  await assert.rejects(askOnce(`${url}/half`, question).then(text), silent)
})

test('an answer that breaks off in the middle fails who reads it', async (context) => {
  const url = await serve(context, (_, response) => {
    response.writeHead(200, { 'content-length': 10 })
    response.write('half', () => response.destroy())
  })
  await assert.rejects(text(await askOnce(url, QUESTION)), { code: 'ECONNRESET' })
})

test('a signal ends the question and the reading of its answer', async (context) => {
  const url = await serve(context, (request, response) => {
    if (request.url === '/half') response.write('half')
  })
  for (const path of ['/', '/half']) {
    const stop = new AbortController()
    const reading = askOnce(url + path, { ...QUESTION, signal: stop.signal }).then(text)
    setTimeout(() => stop.abort(), 50)
    await assert.rejects(reading, /abort/i)
  }
})

test('a server is believed only when the given authority signed its certificate', async (context) => {
  const certificate = makeCertificate(await temporaryDirectory(context))
  const url = await serve(context, (_, response) => response.end('ok'), certificate)
  const ca = readFileSync(certificate.certFile, 'utf8')
  assert.equal(await text(await askOnce(url, { ...QUESTION, ca })), 'ok')
  await assert.rejects(askOnce(url, QUESTION), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
})
