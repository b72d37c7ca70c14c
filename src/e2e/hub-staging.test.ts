import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type HubServer, startHubServer } from '../testing/hub-server.js'
import { makeWorld, type World } from '../testing/world.js'

async function openHub(context: TestContext): Promise<{ readonly hub: HubServer; readonly world: World }> {
  const hub = await startHubServer()
  context.after(() => hub.close())
  return { hub, world: await makeWorld(context, {}) }
}

/** Runs dsc with the hub as HF_ENDPOINT, without a token that this test does not name. */
function run(world: World, hub: HubServer, words: readonly string[], environment = {}) {
  const none = { HF_TOKEN: '', HF_TOKEN_PATH: '', HF_HOME: join(world.directory, 'home') }
  return world.start(words, { environment: { HF_ENDPOINT: hub.endpoint, ...none, ...environment } }).finished
}

async function prepare(world: World, hub: HubServer, words: readonly string[], environment = {}) {
  const prepared = await run(world, hub, ['prepare', ...words, '--task', 'a', '--json'], environment)
  assert.equal(prepared.code, 0, prepared.stderr)
  return JSON.parse(prepared.stdout)
}

const namesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()

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
  const shown = await run(world, hub, ['run', 'hf://org/model', ...show])
  assert.equal(shown.code, 0, shown.stderr)
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

test('dsc adopt leaves a cache with broken links, half downloads and locks as it is, and takes what is whole', async (t) => {
  const { hub, world } = await openHub(t)
  const [whole, half] = [randomBytes(30_000), randomBytes(20_000)]
  const sha256 = (body: Buffer) => createHash('sha256').update(body).digest('hex')
  const commit = hub.commit('models/org/model', { 'whole.bin': whole, 'half.bin': half })
  const clients = join(world.directory, 'hub')
  const repository = join(clients, 'models--org--model')
  for (const folder of [`snapshots/${commit}`, 'blobs', 'refs', `.no_exist/${commit}`, 'trees'])
    mkdirSync(join(repository, folder), { recursive: true })
  mkdirSync(join(clients, '.locks/models--org--model'), { recursive: true })
  mkdirSync(join(clients, `blobs/ab`), { recursive: true })
  const put = (name: string, body: string | Buffer) =>
    writeFileSync(join(clients, name), body, { mode: 0o444 })
  put('CACHEDIR.TAG', 'Signature: 8a477f597d28d172789f06886806bc55')
  put('blobs/ab/abcd', whole) // where huggingface_hub 2.x keeps what several repositories share
  symlinkSync('../../blobs/ab/abcd', join(repository, 'blobs', sha256(whole)))
  symlinkSync(`../../blobs/${sha256(whole)}`, join(repository, 'snapshots', commit, 'whole.bin'))
  symlinkSync(`../../blobs/${sha256(half)}`, join(repository, 'snapshots', commit, 'half.bin'))
  symlinkSync('nowhere', join(repository, 'refs/broken'))
  put(`models--org--model/blobs/${sha256(half)}.0a1b2c3d.incomplete`, half.subarray(0, 9000))
  put(`models--org--model/refs/main`, commit)
  put(`models--org--model/refs/main.0a1b2c3d.tmp`, commit.slice(0, 11)) // of a client that was killed
  put(`models--org--model/refs/v1.0a1b2c3d.tmp`, commit) // and of one that was killed a little later
  put(`models--org--model/refs/empty`, '')
  put(`models--org--model/.no_exist/${commit}/params.json`, '')
  put(`models--org--model/trees/${commit}.json`, '{}')
  put(`.locks/models--org--model/${sha256(half)}.lock`, '')
  const before = describeTree(clients)
  const planned = await run(world, hub, ['adopt', clients, '--dry-run', '--json'])
  assert.equal(planned.code, 0, planned.stderr)
  const sources = JSON.parse(planned.stdout).folders.map(({ source }: { source: string }) => source)
  assert.deepEqual(sources, ['hf://org/model'])
  const adopted = await run(world, hub, ['adopt', clients, '--json'])
  assert.equal(adopted.code, 0, adopted.stderr)
  const [copy] = JSON.parse(adopted.stdout).copies
  assert.equal(hub.sentBytes, half.length)
  assert.ok(readFileSync(join(copy.path, 'half.bin')).equals(half))
  assert.ok(readFileSync(join(copy.path, 'whole.bin')).equals(whole))
  assert.deepEqual(describeTree(clients), before)
})

/** A cache of the hub's own clients with the given snapshots of a repository, by `refs` where these name a commit. */
function fillClientsCache(
  world: World,
  folder: string,
  cached: {
    readonly snapshots: Readonly<Record<string, Readonly<Record<string, string>>>>
    readonly refs: Readonly<Record<string, string>>
  },
): string {
  const clients = join(world.directory, 'clients')
  const repository = join(clients, folder)
  const put = (name: string, body: string) => {
    mkdirSync(join(repository, name, '..'), { recursive: true })
    writeFileSync(join(repository, name), body)
  }
  for (const [commit, files] of Object.entries(cached.snapshots)) {
    mkdirSync(join(repository, 'snapshots', commit), { recursive: true })
    for (const body of Object.values(files))
      put(`blobs/${createHash('sha1').update(`blob ${body.length}\0${body}`).digest('hex')}`, body)
  }
  for (const [revision, commit] of Object.entries(cached.refs)) put(`refs/${revision}`, commit)
  return clients
}

/** The commit that a copy's `HF_HUB_CACHE` has a branch at. */
async function readRef(world: World, hub: HubServer, source: string, ref: string): Promise<string> {
  const { stdout } = await run(world, hub, ['prepare', source, '--task', 'a', '--hf'])
  return readFileSync(join(stdout.trim(), ref), 'utf8')
}

test('dsc adopt takes each branch and tag at the commit that the cache has, though the hub has moved on', async (t) => {
  const { hub, world } = await openHub(t)
  const old = { 'a.txt': 'one', 'b.txt': 'same', 'missing.txt': 'not downloaded' }
  const commit = hub.commit('datasets/org/name', old)
  const tagged = hub.commit('datasets/org/name', { 'a.txt': 'tag' }, { branch: 'v1' })
  hub.commit('datasets/org/name', { 'a.txt': 'two', 'b.txt': 'same', 'c.txt': 'new' })
  hub.commit('datasets/org/name', { 'a.txt': 'moved' }, { branch: 'v1' })
  const bare = hub.commit('datasets/org/name', { 'a.txt': 'bare' }, { branch: 'other' })
  const clients = fillClientsCache(world, 'datasets--org--name', {
    snapshots: { [commit]: { 'a.txt': 'one', 'b.txt': 'same' }, [tagged]: { 'a.txt': 'tag' }, [bare]: {} },
    refs: { main: commit, v1: tagged, pruned: 'f'.repeat(40) },
  })
  const planned = await run(world, hub, ['adopt', clients, '--dry-run', '--json'])
  const folder = clients
  assert.deepEqual(JSON.parse(planned.stdout).folders, [
    { folder, source: 'hf://datasets/org/name', commit },
    { folder, source: 'hf://datasets/org/name@v1', commit: tagged },
    { folder, source: `hf://datasets/org/name@${bare}`, commit: bare },
  ])
  const adopted = await run(world, hub, ['adopt', clients, '--json'])
  assert.equal(adopted.code, 0, adopted.stderr)
  const [main, v1] = JSON.parse(adopted.stdout).copies
  assert.equal(hub.sentBytes, 'not downloaded'.length + 'bare'.length)
  assert.deepEqual(namesBelow(main.path), Object.keys(old))
  assert.equal(readFileSync(join(main.path, 'a.txt'), 'utf8'), 'one')
  assert.equal(readFileSync(join(v1.path, 'a.txt'), 'utf8'), 'tag')
  const ref = 'datasets--org--name/refs'
  assert.equal(await readRef(world, hub, 'hf://datasets/org/name', `${ref}/main`), commit)
  assert.equal(await readRef(world, hub, 'hf://datasets/org/name@v1', `${ref}/v1`), tagged)
  const refreshed = await prepare(world, hub, ['hf://datasets/org/name', '--refresh'])
  assert.equal(readFileSync(join(refreshed.path, 'a.txt'), 'utf8'), 'two')
})

test('dsc adopt takes a revision by its commit where the node has the branch at another', async (t) => {
  const { hub, world } = await openHub(t)
  const commit = hub.commit('models/org/model', { 'a.txt': 'old' })
  const clients = fillClientsCache(world, 'models--org--model', {
    snapshots: { [commit]: { 'a.txt': 'old' } },
    refs: { main: commit },
  })
  const moved = hub.commit('models/org/model', { 'a.txt': 'new' })
  const ready = await prepare(world, hub, ['hf://org/model'])
  const adopted = await run(world, hub, ['adopt', clients])
  assert.equal(adopted.code, 0, adopted.stderr)
  assert.match(adopted.stderr, new RegExp(`on this node at ${moved}.*becomes hf://org/model@${commit}`))
  const copy = await prepare(world, hub, [`hf://org/model@${commit}`])
  assert.equal(hub.sentBytes, 'new'.length)
  assert.equal(readFileSync(join(copy.path, 'a.txt'), 'utf8'), 'old')
  assert.equal((await prepare(world, hub, ['hf://org/model'])).path, ready.path)
})

test('dsc adopt names every revision that it could not take while the hub is away', async (t) => {
  const { hub, world } = await openHub(t)
  const commit = hub.commit('models/org/model', { 'a.txt': 'x' })
  const clients = fillClientsCache(world, 'models--org--model', {
    snapshots: { [commit]: { 'a.txt': 'x' } },
    refs: { main: commit, v1: commit },
  })
  hub.onRequest = (_request, response) => {
    response.writeHead(500, { 'content-length': '0' })
    response.end()
    return true
  }
  const away = await run(world, hub, ['adopt', clients])
  assert.match(
    away.stderr,
    /the hub failed[\s\S]*2 revisions not adopted \(hf:\/\/org\/model, hf:\/\/org\/model@v1\)/,
  )
  assert.doesNotMatch(away.stderr, /\n\s+at /)
  assert.equal(away.code, 8)
  hub.onRequest = undefined
  const adopted = await run(world, hub, ['adopt', clients, '--json'])
  assert.equal(adopted.code, 0, adopted.stderr)
  assert.equal(JSON.parse(adopted.stdout).copies.length, 2)
  assert.equal(hub.sentBytes, 0)
})

/** Every entry's name, kind, mode, size and time of change. */
function describeTree(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .toSorted()
    .map((name) => {
      const { mode, size, mtimeMs } = lstatSync(join(folder, name))
      return `${name} ${mode} ${size} ${mtimeMs}`
    })
}

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
  const again = await stage()
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stderr, /somebody wrote into it/)
  assert.equal(readFileSync(main, 'utf8'), commit)
  assert.deepEqual(readdirSync(view), ['models--org--model'])
  assert.doesNotMatch((await stage()).stderr, /somebody/)
  const { dataset } = await prepare(world, hub, ['hf://org/model'])
  assert.equal((await world.dsc('release', dataset, '--task', 'a')).code, 0)
  const evicted = await world.dsc('evict', dataset, '--yes')
  assert.equal(evicted.code, 0, evicted.stderr)
})
