import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { namesBelow, openHub, prepare, run } from '../testing/hub-world.js'

test('a folder of a repository at a tag, less what --exclude names, is all that is fetched', async (t) => {
  const { hub, world } = await openHub(t)
  const english = randomBytes(40_000)
  const files = {
    'data/en/a b.parquet': english,
    'data/en/notes.md': 'x',
    'data/de/a.parquet': 'de',
    'README.md': '#',
  }
  const commit = hub.commit('datasets/org/name', files, { branch: 'v1' })
  hub.commit('datasets/org/name', { 'data/en/other.parquet': 'later' })
  const source = 'hf://datasets/org/name@v1/data/en'
  const copy = await prepare(world, hub, [source, '--exclude', '*.md'])
  assert.deepEqual(namesBelow(copy.path), ['a b.parquet'])
  assert.ok(readFileSync(join(copy.path, 'a b.parquet')).equals(english))
  assert.equal(hub.sentBytes, english.length)
  const { stdout } = await run(world, hub, ['prepare', source, '--exclude', '*.md', '--task', 'a', '--hf'])
  const repository = join(stdout.trim(), 'datasets--org--name')
  assert.equal(readFileSync(join(repository, 'refs/v1'), 'utf8'), commit)
  assert.deepEqual(namesBelow(join(repository, 'snapshots', commit)), ['data/en/a b.parquet'])
  const again = await prepare(world, hub, ['hf://datasets/org/name@v1/data/en/'])
  assert.deepEqual(namesBelow(again.path), ['a b.parquet', 'notes.md'])
  assert.equal(hub.sentBytes, english.length + 1) // the Parquet file is on the disk already
})

test('what a command finds at HF_HUB_CACHE is the libraries’ layout, and no file of it can be written', async (t) => {
  const { hub, world } = await openHub(t)
  const files = { 'config.json': '{}', 'w.safetensors': randomBytes(9000), 'deep/er/x.txt': 'x' }
  const commit = hub.commit('models/org/model', files)
  const show = ['--', 'sh', '-c', 'echo "$HF_HUB_CACHE"']
  const shown = await succeeds(run(world, hub, ['run', 'hf://org/model', ...show]))
  const cache = shown.stdout.trim()
  assert.deepEqual(readdirSync(cache), ['models--org--model'])
  const repository = join(cache, 'models--org--model')
  assert.deepEqual(readdirSync(repository).toSorted(), ['blobs', 'refs', 'snapshots'])
  const snapshot = join(repository, 'snapshots', commit)
  assert.deepEqual(namesBelow(snapshot), Object.keys(files).toSorted())
  for (const name of namesBelow(snapshot)) assert.ok(lstatSync(join(snapshot, name)).isSymbolicLink(), name)
  for (const name of namesBelow(repository))
    assert.equal(statSync(join(repository, name)).mode & 0o222, 0, name)
})

test('a branch that moves while it is staged is staged as it was; --refresh takes the rest and nothing twice', async (t) => {
  const { hub, world } = await openHub(t)
  const files = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`f/${at}.bin`, randomBytes(1000)]))
  const first = hub.commit('models/org/moving', files)
  let pushed: string | undefined
  hub.onRequest = ({ url }) => {
    if (url?.includes('/resolve/'))
      pushed ??= hub.commit('models/org/moving', { 'f/7.bin': 'seven', 'f/8.bin': 'eight' }, { keeps: true })
    return false
  }
  const copy = await prepare(world, hub, ['hf://org/moving'])
  assert.ok(pushed)
  assert.ok(hub.requests.every((line) => !line.includes('/resolve/') || line.includes(first)))
  for (const [name, body] of Object.entries(files))
    assert.ok(readFileSync(join(copy.path, name)).equals(body))
  const sent = hub.sentBytes
  const next = await prepare(world, hub, ['hf://org/moving', '--refresh'])
  assert.notEqual(next.version, copy.version)
  assert.deepEqual([next.downloaded.reusedFiles, hub.sentBytes - sent], [58, 10])
  assert.equal(readFileSync(join(next.path, 'f/7.bin'), 'utf8'), 'seven')
})

test('a token is taken from HF_TOKEN, then HF_TOKEN_PATH, then HF_HOME, and a repository that hides says what to set', async (t) => {
  const { hub, world } = await openHub(t)
  const home = join(world.directory, 'home')
  mkdirSync(home)
  writeFileSync(join(home, 'token'), 'of-the-home\n')
  writeFileSync(join(world.directory, 'named'), 'of-the-file\n')
  for (const [token, environment] of [
    ['of-the-home', {}],
    ['of-the-file', { HF_TOKEN_PATH: join(world.directory, 'named') }],
    ['of-the-variable', { HF_TOKEN: 'of-the-variable', HF_TOKEN_PATH: join(world.directory, 'named') }],
  ] as const) {
    hub.commit(`models/org/${token}`, { 'a.txt': token })
    hub.protect(`models/org/${token}`, { token })
    const copy = await prepare(world, hub, [`hf://org/${token}`], environment)
    assert.equal(readFileSync(join(copy.path, 'a.txt'), 'utf8'), token)
  }
  hub.commit('models/org/hidden', { 'a.txt': 'x' })
  hub.protect('models/org/hidden', { token: 'of-somebody-else' })
  const refused = await run(world, hub, ['prepare', 'hf://org/hidden'])
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /repository not found, or your token cannot read it[\s\S]*set HF_TOKEN/)
  assert.doesNotMatch(refused.stderr, /of-the-home/)
})

test('a repository that was renamed is followed, and one whose hub asks to wait is waited for', async (t) => {
  const { hub, world } = await openHub(t)
  const weights = randomBytes(5000)
  hub.commit('models/org/new', { 'config.json': '{}', 'w.safetensors': weights })
  let refusals = 0
  hub.onRequest = ({ url = '' }, response) => {
    if (url.includes('org/old')) {
      response.writeHead(307, { location: url.replace('org/old', 'org/new'), 'content-length': '0' }).end()
      return true
    }
    if (!url.includes('/resolve/') || refusals === 3) return false
    refusals += 1
    const wait = refusals === 1 ? { ratelimit: '"resolvers";r=0;t=1' } : { 'retry-after': '1' }
    response.writeHead(refusals === 3 ? 503 : 429, { ...wait, 'content-length': '0' }).end()
    return true
  }
  const copy = await prepare(world, hub, ['hf://org/old'])
  assert.equal(refusals, 3)
  assert.ok(readFileSync(join(copy.path, 'w.safetensors')).equals(weights))
  assert.equal((await run(world, hub, ['verify', copy.dataset])).code, 0)
})

test('the view for the hub’s clients cannot be written, and is laid anew where somebody who may did', async (t) => {
  const { hub, world } = await openHub(t)
  const commit = hub.commit('models/org/model', { 'a/config.json': '{}', 'w.safetensors': 'x' })
  const stage = () => run(world, hub, ['prepare', 'hf://org/model', '--hf', '--task', 'a'])
  const view = (await stage()).stdout.trim()
  const folders = readdirSync(view, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name))
  for (const folder of [view, ...folders]) assert.equal(statSync(folder).mode & 0o222, 0, folder)
  const main = join(view, 'models--org--model/refs/main')
  // As root, or as somebody who opened it to himself.
  chmodSync(join(main, '..'), 0o755)
  rmSync(main)
  writeFileSync(main, 'b'.repeat(40))
  chmodSync(view, 0o755)
  mkdirSync(join(view, 'models--org--other'))
  const again = await succeeds(stage())
  assert.match(again.stderr, /somebody wrote into it/)
  assert.equal(readFileSync(main, 'utf8'), commit)
  assert.deepEqual(readdirSync(view), ['models--org--model'])
  assert.doesNotMatch((await stage()).stderr, /somebody/)
  const { dataset } = await prepare(world, hub, ['hf://org/model'])
  assert.equal((await world.dsc('release', dataset, '--task', 'a')).code, 0)
  await succeeds(world.dsc('evict', dataset, '--yes'))
})
