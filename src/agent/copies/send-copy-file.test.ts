import assert from 'node:assert/strict'
import { once } from 'node:events'
import { truncateSync, writeFileSync } from 'node:fs'
import { createServer, get, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Copy } from '../../model/copy.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { sendCopyFile } from './send-copy-file.js'

const MIB = 1024 * 1024

test('a file that ends early ends its answer and nothing else, however slowly the client takes it', async (t) => {
  const root = await temporaryDirectory(t)
  const path = join(root, 'a.bin')
  writeFileSync(path, '')
  truncateSync(path, 16 * MIB)
  const copy = { origin: 's3', version: null, path: root } as Copy
  const range = { offset: 0, length: 64 * MIB }
  const unhandled: unknown[] = [] // any of these would end an agent
  const note = (error: unknown) => unhandled.push(error)
  process.on('unhandledRejection', note)
  t.after(() => process.off('unhandledRejection', note))
  const { promise: failed, resolve } = Promise.withResolvers<unknown>()
  const server = createServer((_, response) => {
    const begin = () => response.writeHead(200, { 'content-length': range.length })
    sendCopyFile({ root, copy, path, range }, response, begin).catch((error: unknown) => {
      response.destroy()
      resolve(error)
    })
  })
  const port = await listenLocally(server, t)
  const request = get({ port, agent: false })
  const [answer] = (await once(request, 'response')) as [IncomingMessage]
  const read = async () => {
    for await (const _ of answer) await sleep(10)
  }
  await assert.rejects(read(), /aborted/)
  assert.deepEqual(unhandled, [])
  assert.match(String(await failed), /ends \d+ bytes early/)
})
