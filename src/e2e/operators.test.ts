import assert from 'node:assert/strict'
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { startFlowerStore } from '../testing/flower-store.js'
import { makeWorld, writeTree } from '../testing/world.js'

const { server, bucket, datasets } = await startFlowerStore()
after(() => server.close())

test('lock keeps a copy from eviction and from evict, unlock lets it go', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('release', 'flowers', '--task', 'a')
  assert.equal((await world.dsc('lock', 'flowers', '--reason', 'deadline')).code, 0)
  const relocked = await world.dsc('lock', 'flowers', '--reason', 'another')
  assert.equal(relocked.code, 0)
  assert.match(relocked.stdout, /^flowers is locked already, by .+: deadline\n$/)
  assert.match(relocked.stderr, /the reason stays as it is/)
  const refused = await world.dsc('prepare', 'birds', '--task', 'b')
  assert.equal(refused.code, 5)
  assert.match(refused.stderr, /locked by .*: deadline/)
  assert.match(refused.stderr, /try: dsc unlock flowers/)
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 10)
  assert.equal((await world.dsc('unlock', 'flowers')).stdout, 'unlocked flowers (1 copy)\n')
  const again = await world.dsc('unlock', 'flowers')
  assert.deepEqual([again.code, again.stdout], [0, 'flowers was not locked\n'])
  assert.equal((await world.dsc('evict', 'flowers')).code, 2, 'without a terminal nobody can agree')
  assert.equal((await world.dsc('evict', 'flowers', '--dry-run')).code, 0)
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 1)
  assert.equal((await world.dsc('evict', 'flowers', '--yes')).code, 0)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
})

test('adopt puts folders into the record where they lie, locked until a source is known', async (context) => {
  const world = await makeWorld(context, { server, datasets: {} })
  const old = join(world.directory, 'old')
  await writeTree(old, { 'cats/1.txt': 'meow', 'dogs/1.txt': 'woof', 'flowers/labels.csv': 'rose,1' })
  const listed = await world.dsc('adopt', `${old}/*`, '--dry-run')
  assert.match(listed.stdout, /cats\s+as cats\n.*dogs\s+as dogs/)
  assert.equal((await world.dsc('adopt', `${old}/*`)).code, 0)
  assert.deepEqual(world.query('SELECT dataset, lock_state FROM cache_record ORDER BY dataset'), [
    { dataset: 'cats', lock_state: 'locked' },
    { dataset: 'dogs', lock_state: 'locked' },
    { dataset: 'flowers', lock_state: 'locked' },
  ])
  await world.dsc('unlock', 'cats')
  assert.equal((await world.dsc('evict', 'cats', '--yes')).code, 10, 'no source: nobody could fetch it again')
  assert.equal(await readFile(join(old, 'cats/1.txt'), 'utf8'), 'meow')
  assert.equal((await world.dsc('verify', 'dogs')).code, 0)
  const adoptFlowers = () =>
    world.dsc(
      ...['adopt', join(old, 'flowers'), '--source', `s3://${bucket}/flowers/`],
      ...['--endpoint', server.endpoint, '--path-style'],
    )
  const wrong = await adoptFlowers()
  assert.equal(wrong.code, 9)
  assert.match(wrong.stderr, /is not what its source holds: rose\/1.jpg is missing/)
  await writeTree(old, { 'flowers/rose/1.jpg': 'a rose', 'flowers/rose/2.jpg': 'another rose' })
  await succeeds(adoptFlowers())
  const prepared = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual([prepared.path, prepared.origin], [join(old, 'flowers'), 'local'])
})

test('cleanup brings a copy back into a record that was lost, and forgets a copy that was deleted by hand', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets() })
  const { path } = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  for (const suffix of ['', '-wal', '-shm']) await rm(world.recordPath + suffix, { force: true })
  const dry = await world.dsc('cleanup', '--dry-run')
  assert.match(dry.stdout, /would record .*flowers/)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
  await world.dsc('cleanup')
  const again = JSON.parse((await world.dsc('prepare', 'flowers', '--task', 'a', '--json')).stdout)
  assert.deepEqual([again.path, again.origin], [path, 'local'])
  await rm(join(path, '..'), { recursive: true })
  const forgot = await world.dsc('cleanup')
  assert.match(forgot.stdout, /forgot flowers/)
  assert.equal(world.query('SELECT 1 FROM copies').length, 0)
  await succeeds(world.dsc('prepare', 'flowers', '--task', 'a'))
  assert.deepEqual((await world.dsc('cleanup')).stdout, 'nothing to clean up\n')
})

test('a smaller quota evicts nothing by itself; cleanup evicts only what is idle and unlocked', async (context) => {
  const world = await makeWorld(context, { server, datasets: datasets(), cache: { maxDatasets: 5 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  await world.dsc('prepare', 'birds', '--task', 'b')
  await world.dsc('release', 'birds', '--task', 'b')
  await world.configure({ datasets: datasets(), cache: { maxDatasets: 1 } })
  await world.dsc('prepare', 'flowers', '--task', 'a')
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 2)
  const dry = JSON.parse((await world.dsc('cleanup', '--dry-run', '--json')).stdout)
  assert.deepEqual(
    dry.actions.map(({ kind, dataset }: { kind: string; dataset: string }) => [kind, dataset]),
    [['evict', 'birds']],
  )
  assert.equal(world.query('SELECT 1 FROM cache_record').length, 2)
  await world.dsc('cleanup')
  assert.deepEqual(world.query('SELECT dataset FROM cache_record'), [{ dataset: 'flowers' }])
  await world.configure({ datasets: datasets(), cache: { minFree: '900TiB' } })
  const kept = await world.dsc('cleanup')
  assert.match(kept.stdout, /^removed \S+\/trash\/kept-\S+ +\(its room is needed\)\n$/)
  assert.equal((await world.dsc('cleanup')).stdout, 'nothing to clean up\n', 'what is leased stays')
})

test('cleanup prints what to install for cron and systemd', async (context) => {
  const world = await makeWorld(context, {})
  assert.match(
    (await world.dsc('cleanup', '--print-cron')).stdout,
    /^\*\/10 \* \* \* \* root .* cleanup --quiet/m,
  )
  assert.match((await world.dsc('cleanup', '--print-systemd')).stdout, /ExecStart=.* cleanup --quiet/)
})
