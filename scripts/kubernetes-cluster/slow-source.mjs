// An S3 server of known speed, in front of another: GET of ml-data/slow-SECONDS/… is paced so that the 8 MiB of the
// dataset take so long; all else passes. Notes when each object's last byte left, in Unix milliseconds, in the file given:
//   node slow-source.mjs ADDRESS NOTES        (in the network namespace hk8s)
import { appendFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const [address, notes] = process.argv.slice(2)
const DATASET_BYTES = 8 << 20
const CHUNK_BYTES = 16 << 10
/** Dataset → when its first byte left and how many have since. */
const sent = new Map()

async function pace(dataset, body, response) {
  const seconds = Number(dataset.slice('slow-'.length))
  const progress = sent.get(dataset) ?? { sinceMs: Date.now(), bytes: 0 }
  sent.set(dataset, progress)
  for await (const chunk of body)
    for (let at = 0; at < chunk.length; at += CHUNK_BYTES) {
      const part = chunk.subarray(at, at + CHUNK_BYTES)
      progress.bytes += part.length
      await sleep(progress.sinceMs + (progress.bytes / DATASET_BYTES) * seconds * 1000 - Date.now())
      if (response.destroyed) return
      response.write(part)
    }
  appendFileSync(notes, `${dataset} ${Date.now()}\n`)
  response.end()
}

createServer((incoming, response) => {
  const { method, url, headers } = incoming
  const [, dataset] = /^\/ml-data\/(slow-\d+)\/./.exec(url) ?? []
  const onward = request({ host: address, port: 9000, method, path: url, headers }, (answer) => {
    response.writeHead(answer.statusCode, answer.headers)
    if (method !== 'GET' || dataset === undefined) answer.pipe(response)
    else pace(dataset, answer, response).catch(() => response.destroy())
  })
  onward.on('error', () => response.destroy())
  incoming.pipe(onward)
}).listen(9001, address)
