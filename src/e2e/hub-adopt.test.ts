import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import type { HubServer } from '../testing/hub-server.js'
import { namesBelow, openHub, prepare, run } from '../testing/hub-world.js'
import type { World } from '../testing/world.js'

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
  const planned = await succeeds(run(world, hub, ['adopt', clients, '--dry-run', '--json']))
  const sources = JSON.parse(planned.stdout).folders.map(({ source }: { source: string }) => source)
  assert.deepEqual(sources, ['hf://org/model'])
  const adopted = await succeeds(run(world, hub, ['adopt', clients, '--json']))
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
  const adopted = await succeeds(run(world, hub, ['adopt', clients, '--json']))
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
  const adopted = await succeeds(run(world, hub, ['adopt', clients]))
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
  const adopted = await succeeds(run(world, hub, ['adopt', clients, '--json']))
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
