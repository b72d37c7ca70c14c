import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { startHubServer } from '../testing/hub-server.js'
import { makeWorld, writeTree } from '../testing/world.js'

test('dsc prepare stages a repository of a hub, proven, and fetches only what a new commit changed', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const weights = randomBytes(3_000_000)
  const files = { 'config.json': '{}', 'w.safetensors': weights, 'onnx/w.onnx': randomBytes(200_000) }
  const first = hub.commit('models/org/model', files)
  const world = await makeWorld(t, {
    datasets: { model: { source: 'hf://org/model', endpoint: hub.endpoint } },
  })
  const prepared = await succeeds(world.dsc('prepare', 'model', '--task', 'a', '--json'))
  const copy = JSON.parse(prepared.stdout)
  assert.deepEqual(copy.downloaded.verifiedBy, { 'git-sha1': 1, sha256: 2 })
  assert.ok(readFileSync(join(copy.path, 'w.safetensors')).equals(weights))

  const cache = (await world.dsc('prepare', 'model', '--task', 'a', '--hf')).stdout.trim()
  const repository = join(cache, 'models--org--model')
  assert.equal(readFileSync(join(repository, 'refs/main'), 'utf8'), first)
  const snapshot = join(repository, 'snapshots', first)
  assert.ok(readFileSync(join(snapshot, 'onnx/w.onnx')).equals(files['onnx/w.onnx']))
  const sha256 = createHash('sha256').update(weights).digest('hex')
  assert.equal(readlinkSync(join(snapshot, 'w.safetensors')), `../../blobs/${sha256}`)
  assert.equal(realpathSync(join(snapshot, 'w.safetensors')), join(copy.path, 'w.safetensors'))

  const sent = hub.sentBytes
  hub.commit('models/org/model', { 'config.json': '{"a":1}' }, { keeps: true })
  const refreshed = await succeeds(world.dsc('prepare', 'model', '--task', 'a', '--refresh', '--json'))
  const next = JSON.parse(refreshed.stdout)
  assert.notEqual(next.version, copy.version)
  assert.equal(next.downloaded.reusedFiles, 2)
  assert.equal(hub.sentBytes - sent, '{"a":1}'.length)
  assert.equal(statSync(join(next.path, 'w.safetensors')).ino, statSync(join(copy.path, 'w.safetensors')).ino)
})

test('equal files of two repositories are on the disk once, whatever they are called', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const weights = randomBytes(500_000)
  hub.commit('models/org/base', { 'model.safetensors': weights })
  hub.commit('models/org/tuned', { 'base/weights.bin': weights, 'adapter.safetensors': randomBytes(1000) })
  const world = await makeWorld(t, {
    datasets: {
      base: { source: 'hf://org/base', endpoint: hub.endpoint },
      tuned: { source: 'hf://org/tuned', endpoint: hub.endpoint },
    },
  })
  const base = (await world.dsc('prepare', 'base', '--task', 'a')).stdout.trim()
  const sent = hub.sentBytes
  const tuned = (await world.dsc('prepare', 'tuned', '--task', 'a')).stdout.trim()
  assert.equal(hub.sentBytes - sent, 1000)
  assert.equal(statSync(join(tuned, 'base/weights.bin')).ino, statSync(join(base, 'model.safetensors')).ino)
  await succeeds(world.dsc('verify', 'tuned'))
  await world.dsc('release', 'base', '--task', 'a')
  await succeeds(world.dsc('evict', 'base', '--yes'))
  assert.ok(readFileSync(join(tuned, 'base/weights.bin')).equals(weights))
})

test('--include takes a part of a repository by its URL, under a name of its own', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  hub.commit('datasets/org/name', { 'data/a.parquet': 'a', 'data/b.parquet': 'b', 'README.md': 'x' })
  const world = await makeWorld(t, {})
  const environment = { HF_ENDPOINT: hub.endpoint }
  const prepare = async (...words: readonly string[]) => {
    const running = world.start(['prepare', ...words, '--task', 'a', '--json'], { environment })
    const { stdout } = await succeeds(running.finished)
    return JSON.parse(stdout)
  }
  const whole = await prepare('hf://datasets/org/name')
  const part = await prepare('hf://datasets/org/name', '--include', '*.md')
  assert.deepEqual([whole.files, part.files], [3, 1])
  assert.notEqual(whole.dataset, part.dataset)
  const refused = await world.dsc('prepare', whole.dataset, '--include', '*.md')
  assert.equal(refused.code, 2)
  assert.match(
    refused.stderr,
    /--include: only for a source such as .*\n {2}try: dsc dataset add \S+ s3:\/\/bucket\/prefix\/ --include \*\.md\n/,
  )
})

test('dsc run shows repositories to the command as the cache of the hub’s own clients', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  for (const name of ['a', 'b']) hub.commit(`models/org/${name}`, { 'config.json': name })
  const world = await makeWorld(t, {})
  const script = join(world.directory, 'show.sh')
  writeFileSync(
    script,
    'echo "$HF_HUB_OFFLINE $HF_HUB_CACHE"; cat $HF_HUB_CACHE/models--org--*/snapshots/*/config.json',
  )
  const run = (names: readonly string[], environment = {}) =>
    world.start(['run', ...names.map((name) => `hf://org/${name}`), '--', 'sh', script], {
      environment: { HF_ENDPOINT: hub.endpoint, ...environment },
    }).finished
  const one = await succeeds(run(['a']))
  assert.match(one.stdout, /^1 .*\/hub\na$/)
  const both = await run(['a', 'b'], { HF_HUB_OFFLINE: '0' })
  const [, folder = ''] = /^0 (.*)\nab$/.exec(both.stdout) ?? []
  assert.notEqual(folder, '', both.stdout + both.stderr)
  assert.equal(existsSync(folder), false)
})

test('a gateway lists and sends declared repositories as a hub does, range by range, and names what it has not', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const weights = randomBytes(300_000)
  const many = Object.fromEntries(Array.from({ length: 1100 }, (_, at) => [`many/${at}/x.txt`, `${at}`]))
  const commit = hub.commit('models/org/model', { 'a b/ü.txt': 'odd', 'w.safetensors': weights, ...many })
  hub.commit('models/org/secret', { 'a.txt': 'x' })
  const world = await makeWorld(t, {
    agent: { listen: '127.0.0.1:0' },
    datasets: { model: { source: 'hf://org/model@main', endpoint: hub.endpoint } },
  })
  const agent = world.start(['agent', '--gateway', '127.0.0.1:0', '--json'])
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  const { gateway } = JSON.parse(String(line)) as { gateway: string }
  const ask = (path: string, headers = {}) => fetch(`${gateway}${path}`, { headers })

  const readJson = async (answer: Response) => JSON.parse(await answer.text())
  const about = await readJson(await ask('/api/models/org/model/revision/main'))
  assert.equal(about.sha, commit)
  assert.equal(about.siblings.length, 1102)
  const paths: string[] = []
  for (let next: string | undefined = `/api/models/org/model/tree/${commit}?recursive=true`; next; ) {
    const page = await ask(next)
    for (const entry of await readJson(page)) paths.push(`${entry.type} ${entry.path}`)
    const link = /<[^>]*?(\/api[^>]*)>/.exec(page.headers.get('link') ?? '')
    next = link?.[1]
  }
  assert.equal(paths.length, new Set(paths).size)
  assert.equal(paths.filter((path) => path.startsWith('file ')).length, 1102)
  assert.equal(paths.filter((path) => path.startsWith('directory ')).length, 1102)
  for (const headers of [{ 'x-forwarded-proto': 'https' }, { forwarded: 'for=1.2.3.4;proto=https' }]) {
    const page = await ask(`/api/models/org/model/tree/${commit}?recursive=true`, headers)
    assert.equal(page.status, 401, 'who comes through a proxy is not the local user: a token is wanted')
    await page.arrayBuffer()
  }
  const root = await readJson(await ask(`/api/models/org/model/tree/${commit}`))
  assert.deepEqual(
    root.map(({ path }: { path: string }) => path),
    ['a b', 'many', 'w.safetensors'],
  )
  const file = await ask('/org/model/resolve/main/a%20b/%C3%BC.txt')
  assert.equal(await file.text(), 'odd')
  assert.equal(file.headers.get('x-repo-commit'), commit)
  const range = await ask(`/org/model/resolve/${commit}/w.safetensors`, { range: 'bytes=1000-1999' })
  assert.equal(range.status, 206)
  assert.ok(Buffer.from(await range.arrayBuffer()).equals(weights.subarray(1000, 2000)))
  for (const [path, word] of [
    ['/api/models/org/secret', 'RepoNotFound'],
    ['/api/datasets/org/model', 'RepoNotFound'],
    ['/api/models/org/model/revision/v9', 'RevisionNotFound'],
    ['/org/model/resolve/main/none.txt', 'EntryNotFound'],
    [`/api/models/org/model/tree/${commit}/none`, 'EntryNotFound'],
  ]) {
    const refused = await ask(path!)
    assert.equal(refused.status, 404)
    assert.equal(refused.headers.get('x-error-code'), word)
  }
  for (const method of ['PUT', 'POST', 'DELETE']) {
    const refused = await fetch(`${gateway}/org/model/resolve/main/w.safetensors`, { method })
    assert.equal(refused.status, 405)
  }
})

test('a gateway that trusts no local user wants a key as the hub’s token', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  hub.commit('models/org/model', { 'a.txt': 'x' })
  const world = await makeWorld(t, {
    agent: { listen: '127.0.0.1:0', tokenFile: 'tokens', gateway: { listen: '127.0.0.1:0', users: [] } },
    datasets: { model: { source: 'hf://org/model', endpoint: hub.endpoint } },
  })
  writeFileSync(join(world.directory, 'tokens'), 'a-token-of-this-cluster\n')
  const agent = world.start(['agent', '--json'])
  const [line] = await once(createInterface({ input: agent.process.stdout! }), 'line')
  const { gateway } = JSON.parse(String(line)) as { gateway: string }
  const key = JSON.parse((await world.dsc('gateway', 'key', 'alice', '--json')).stdout)
  for (const [token, status] of [
    [undefined, 401],
    ['hf_somebody', 401],
    [`${key.accessKeyId}:wrong`, 401],
    [`dsc-bob:${key.secretAccessKey}`, 401],
    [`${key.accessKeyId}:${key.secretAccessKey}`, 200],
    ['a-token-of-this-cluster', 200],
  ] as const) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    const answer = await fetch(`${gateway}/org/model/resolve/main/a.txt`, { headers })
    assert.equal(answer.status, status, String(token))
  }
})

test('dsc adopt takes what the hub’s own clients have downloaded, and fetches what is missing or spoilt there', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const [weights, spoilt] = [randomBytes(400_000), randomBytes(9000)]
  const files = { 'w.safetensors': weights, 'onnx/w.onnx': spoilt, 'config.json': '{}', 'a.txt': 'text' }
  const commit = hub.commit('models/org/model', files)
  const tag = hub.commit('models/org/model', { 'a.txt': 'old' }, { branch: 'v1/x' })
  hub.commit('datasets/org/gone', { 'a.txt': 'x' })
  const world = await makeWorld(t, {})
  const clients = join(world.directory, 'hub')
  const repository = join(clients, 'models--org--model')
  const keep = (body: string | Buffer, etag: string) => writeFileSync(join(repository, 'blobs', etag), body)
  for (const folder of ['blobs', 'refs/v1', `snapshots/${commit}`, `snapshots/${tag}`])
    mkdirSync(join(repository, folder), { recursive: true })
  mkdirSync(join(clients, 'datasets--org--gone', 'snapshots', commit), { recursive: true })
  writeFileSync(join(repository, 'refs/main'), commit)
  writeFileSync(join(repository, 'refs/v1/x'), tag)
  keep(weights, createHash('sha256').update(weights).digest('hex'))
  keep(randomBytes(9000), createHash('sha256').update(spoilt).digest('hex'))
  keep('text', createHash('sha1').update('blob 4\0text').digest('hex'))
  const environment = { HF_ENDPOINT: hub.endpoint }
  const run = (...words: readonly string[]) => world.start(words, { environment }).finished

  mkdirSync(join(world.directory, 'plain'))
  const mixed = await run('adopt', clients, join(world.directory, 'plain'))
  assert.equal(mixed.code, 2)
  assert.match(mixed.stderr, /plain is no Hugging Face cache, and others of these are/)
  const planned = await run('adopt', clients, '--dry-run', '--json')
  assert.deepEqual(
    JSON.parse(planned.stdout).folders.map(({ source }: { source: string }) => source),
    [`hf://datasets/org/gone@${commit}`, 'hf://org/model', 'hf://org/model@v1%2Fx'],
  )
  const adopted = await run('adopt', clients, '--json')
  assert.notEqual(adopted.code, 0)
  assert.match(adopted.stderr, /no such revision/)
  const { copies } = JSON.parse(adopted.stdout)
  assert.equal(copies.length, 2)
  assert.equal(hub.sentBytes, spoilt.length + '{}'.length + 'old'.length)
  const { path } = copies[0]
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(path, name)).equals(Buffer.from(body)), name)
  await succeeds(run('verify', copies[0].dataset))
  hub.requests.length = 0
  assert.equal((await run('prepare', 'hf://org/model', '--task', 'a')).stdout.trim(), path)
  assert.deepEqual(hub.requests, [])
})

test('files of a hub cache on a disk without links are taken from its snapshots', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  const [weights, changed] = [randomBytes(300_000), randomBytes(9000)]
  const files = { 'w.safetensors': weights, 'onnx/w.onnx': changed, 'config.json': '{}' }
  const commit = hub.commit('models/org/model', files)
  const world = await makeWorld(t, {})
  const clients = join(world.directory, 'hub')
  await writeTree(join(clients, 'models--org--model/snapshots', commit), {
    ...files,
    'onnx/w.onnx': randomBytes(9000),
  })
  const environment = { HF_ENDPOINT: hub.endpoint, HF_HUB_CACHE: clients }
  const { stdout } = await succeeds(world.start(['prepare', 'hf://org/model'], { environment }).finished)
  assert.equal(hub.sentBytes, changed.length, 'only what had other bytes came from the hub')
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(stdout.trim(), name)).equals(Buffer.from(body)), name)
})

test('a mistake about a repository is one sentence with what to do', async (t) => {
  const hub = await startHubServer()
  t.after(() => hub.close())
  hub.commit('models/org/gated', { 'a.txt': 'x' })
  hub.protect('models/org/gated', { isGated: true })
  const world = await makeWorld(t, { datasets: { here: { source: './x' } } })
  for (const { words, says, code } of [
    { words: ['hf://org/gated'], says: /gated[\s\S]*accept its terms at http/, code: 7 },
    { words: ['hf://org/none'], says: /repository not found[\s\S]*HF_TOKEN/, code: 4 },
    { words: ['here', '--hf'], says: /--hf is for repositories/, code: 2 },
  ]) {
    const { finished } = world.start(['prepare', ...words], { environment: { HF_ENDPOINT: hub.endpoint } })
    const { stderr, code: found } = await finished
    assert.match(stderr, says)
    assert.doesNotMatch(stderr, /\n\s+at /)
    assert.equal(found, code)
  }
})
