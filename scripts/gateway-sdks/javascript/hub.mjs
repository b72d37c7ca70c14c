// Reads a dataset of a hub by the hub's JavaScript client, and prints what it found as JSON: hub.mjs ENDPOINT REPOSITORY.
import { createHash } from 'node:crypto'
import { datasetInfo, downloadFile, fileExists, listCommits, listFiles } from '@huggingface/hub'

const [hubUrl, name] = process.argv.slice(2)
const repo = { type: 'dataset', name }
const files = {}
for await (const { path, type } of listFiles({ repo, hubUrl, recursive: true })) {
  if (type !== 'file') continue
  const blob = await downloadFile({ repo, path, hubUrl, revision: 'HEAD', xet: false })
  const middle = Math.floor(blob.size / 2)
  const halves = [blob.slice(0, middle), blob.slice(middle)].map((half) => half.arrayBuffer())
  const body = Buffer.concat((await Promise.all(halves)).map((half) => Buffer.from(half)))
  files[path] = createHash('sha256').update(body).digest('hex')
}
const commits = []
for await (const { oid } of listCommits({ repo, hubUrl })) commits.push(oid)
const { sha } = await datasetInfo({ name, hubUrl, additionalFields: ['sha'] })
const failures = []
for (const other of [name, 'org/none'])
  try {
    const found = await downloadFile({ repo: { type: 'dataset', name: other }, path: 'none', hubUrl })
    failures.push(found === null ? 'null' : 'found')
  } catch (error) {
    failures.push(error.statusCode ?? error.name)
  }
console.log(
  JSON.stringify({ files, commits, sha, exists: await fileExists({ repo, path: 'none', hubUrl }), failures }),
)
