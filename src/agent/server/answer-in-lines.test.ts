import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { askOnce } from '../../http/ask-once.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { answerInLines } from './answer-in-lines.js'

async function answerWith(context: TestContext, error: unknown) {
  const notes: string[] = []
  const server = createServer((_, response) => {
    const note = (sentence: string) => void notes.push(sentence)
    void answerInLines({ response, stopping: context.signal, note }, () => Promise.reject(error))
  })
  context.after(() => server.close())
  const port = await listenLocally(server)
  const answer = await askOnce(`http://127.0.0.1:${port}/`, {
    ...{ token: undefined, signal: undefined, connectTimeoutMs: 5000, silenceMs: 5000 },
  })
  return { notes, line: JSON.parse(await text(answer)) }
}

test('an error of the kernel is a failure with a code, and no defect', async (context) => {
  const error = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' })
  const { notes, line } = await answerWith(context, error)
  assert.equal(line.error.code, 'IO_FAILED')
  assert.deepEqual(notes, ['failed: the disk or file system fails (EIO: i/o error, read)'])
})

test('a defect is told to the caller, and logged with its stack', async (context) => {
  const { notes, line } = await answerWith(context, new TypeError('x is not a function'))
  assert.deepEqual([line.error.code, line.error.message], ['INTERNAL', 'x is not a function'])
  assert.match(notes[0]!, /by a defect of dsc: TypeError: x is not a function\n +at /)
})
