import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerParser } from './answer-parser.js'

/** Parses `text` in pieces of `pieceBytes`. */
function parse(text: string, pieceBytes: number, isHead = false) {
  let status = 0
  let headers: Readonly<Record<string, string>> = {}
  let body = ''
  const parser = new AnswerParser(isHead ? 'HEAD' : 'GET', {
    onHead: (code, found) => {
      status = code
      headers = found
    },
    onData: (chunk) => {
      body += Buffer.from(chunk).toString('latin1')
    },
  })
  const bytes = Buffer.from(text, 'latin1')
  for (let at = 0; at < bytes.length; at += pieceBytes) parser.take(bytes.subarray(at, at + pieceBytes))
  const { isComplete, mayKeepAlive, isUntilClose } = parser
  return { status, headers: { ...headers }, body, isComplete, mayKeepAlive, isUntilClose }
}

const OK = 'HTTP/1.1 200 OK\r\n'
for (const { name, text, isHead, expected } of [
  {
    name: 'reads a body of a given length',
    text: `${OK}ETag: "a:b"\r\nContent-Length: 5\r\n\r\nhello`,
    expected: { body: 'hello', isComplete: true, mayKeepAlive: true },
  },
  {
    name: 'knows that less than the given length is not all',
    text: `${OK}Content-Length: 6\r\n\r\nhello`,
    expected: { body: 'hello', isComplete: false },
  },
  {
    name: 'is complete at once when the body is empty',
    text: `${OK}content-length: 0\r\n\r\n`,
    expected: { body: '', isComplete: true, mayKeepAlive: true },
  },
  {
    name: 'expects no body after HEAD',
    text: `${OK}content-length: 5\r\n\r\n`,
    isHead: true,
    expected: { body: '', isComplete: true, mayKeepAlive: true },
  },
  {
    name: 'expects no body after 304',
    text: 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n',
    expected: { status: 304, isComplete: true },
  },
  {
    name: 'joins chunks, with extensions and trailers',
    text: `${OK}Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nx-sum: 1\r\n\r\n`,
    expected: { body: 'hello', isComplete: true, mayKeepAlive: true },
  },
  {
    name: 'waits for the end of chunks',
    text: `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n`,
    expected: { body: 'hello', isComplete: false },
  },
  {
    name: 'passes over 1xx answers',
    text: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n${OK}content-length: 2\r\n\r\nok`,
    expected: { status: 200, body: 'ok', isComplete: true },
  },
  {
    name: 'does not use a connection again that the server closes',
    text: `${OK}Connection: close\r\ncontent-length: 2\r\n\r\nok`,
    expected: { isComplete: true, mayKeepAlive: false },
  },
  {
    name: 'does not use a connection of HTTP/1.0 again',
    text: 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok',
    expected: { isComplete: true, mayKeepAlive: false },
  },
  {
    name: 'takes everything until the connection closes when no length is given',
    text: `${OK}\r\nhello`,
    expected: { body: 'hello', isComplete: false, mayKeepAlive: false, isUntilClose: true },
  },
  {
    name: 'joins repeated headers',
    text: `${OK}x: 1\r\nX: 2\r\ncontent-length: 0\r\n\r\n`,
    expected: { headers: { x: '1, 2', 'content-length': '0' } },
  },
]) {
  for (const pieceBytes of [1, 7, 1000]) {
    test(`AnswerParser ${name}, in pieces of ${pieceBytes} bytes`, () => {
      const found: Record<string, unknown> = parse(text, pieceBytes, isHead)
      for (const [field, value] of Object.entries(expected)) assert.deepEqual(found[field], value, field)
    })
  }
}

test('AnswerParser does not use a connection again that sent more than it announced', () => {
  const { body, mayKeepAlive } = parse(`${OK}content-length: 2\r\n\r\nok and more`, 1000)
  assert.equal(body, 'ok')
  assert.equal(mayKeepAlive, false)
})

for (const { name, text } of [
  { name: 'what is no HTTP', text: 'SSH-2.0-OpenSSH_9.6\r\n\r\n' },
  { name: 'a length that is no number', text: `${OK}content-length: 5, 5\r\n\r\n` },
  { name: 'an unknown transfer coding', text: `${OK}transfer-encoding: gzip\r\n\r\n` },
  { name: 'a chunk size that is no number', text: `${OK}transfer-encoding: chunked\r\n\r\nhello\r\n` },
  {
    name: 'a chunk longer than its size',
    text: `${OK}transfer-encoding: chunked\r\n\r\n2\r\nhello\r\n0\r\n\r\n`,
  },
  { name: 'a header without colon', text: `${OK}nonsense\r\n\r\n` },
  { name: 'a head without end', text: OK + 'x: y\r\n'.repeat(20_000) },
]) {
  test(`AnswerParser refuses ${name}`, () => {
    assert.throws(() => parse(text, 1000), { code: 'HTTP_MALFORMED' })
  })
}
