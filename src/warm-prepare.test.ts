import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { openPostgresDatabase } from './records/postgres/postgres-database.js'
import { succeeds } from './testing/dsc-processes.js'
import { startPostgresServer } from './testing/postgres-server.js'
import { makeWorld, writeTree } from './testing/world.js'

const BUNDLE = fileURLToPath(new URL('./warm-prepare.cjs', import.meta.url))
/** Ends with 0 if the short way did all, else with 9. */
const SHORT_WAY = `require(${JSON.stringify(BUNDLE)})
  .prepareIfReady(['prepare', ...process.argv.slice(1)], { version: '0' })
  .then((isDone) => { process.exitCode = isDone ? 0 : 9 })`

const MANIFEST = new URL('./manifest/manifest.js', import.meta.url).href
/** Goes the short way in vain, then publishes a manifest into which somebody else looks. */
const THEN_PUBLISH = `require(${JSON.stringify(BUNDLE)}).prepareIfReady(['prepare', 'other'], { version: '0' }).then(async () => {
  const { Manifest } = await import(${JSON.stringify(MANIFEST)})
  const manifest = Manifest.create('.')
  const looking = Manifest.openPublished('.')
  looking.readSetting('definition')
  setTimeout(() => looking.close(), 50)
  await manifest.finish()
})`

interface Answer {
  readonly code: number | string
  readonly stdout: string
}

/** A world with a dataset `data` that is here, and a way to prepare that never loads the whole program. */
async function makeReadyWorld(context: TestContext, record?: string) {
  const world = await makeWorld(context, record === undefined ? {} : { record })
  const folder = join(world.directory, 'source')
  await writeTree(folder, { 'a.bin': 'content' })
  const datasets = {
    data: { source: `${pathToFileURL(folder)}/` },
    other: { source: `${pathToFileURL(folder)}/` },
  }
  await world.configure({ ...(record && { record }), datasets })
  const first = await succeeds(world.dsc('prepare', 'data', '--task', 'first'))
  const prepareShort = (...words: string[]) =>
    new Promise<Answer>((resolve) => {
      const options = {
        cwd: world.directory,
        env: { ...process.env, XDG_CACHE_HOME: join(world.directory, 'xdg') },
      }
      execFile(process.execPath, ['-e', SHORT_WAY, ...words], options, (error, stdout) =>
        resolve({ code: error?.code ?? 0, stdout }),
      )
    })
  return { world, first, prepareShort }
}

test('a ready copy is leased the short way, and whatever is not that simple is left to the whole program', async (context) => {
  const { world, first, prepareShort } = await makeReadyWorld(context)
  assert.deepEqual(await prepareShort('data', '--task', 'second'), { code: 0, stdout: first.stdout })
  const leases = JSON.parse((await world.dsc('leases', '--json')).stdout)
  assert.ok(JSON.stringify(leases).includes('"second"'), JSON.stringify(leases))
  for (const words of [['other'], ['data', '--refresh'], ['nothing'], ['data', '--ttl', 'soon']]) {
    assert.deepEqual(await prepareShort(...words), { code: 9, stdout: '' }, words.join(' '))
  }
})

test('what the short way reads is small: neither the addon of better-sqlite3 nor what opens manifests', () => {
  const text = readFileSync(BUNDLE, 'utf8')
  assert.ok(text.length < 42_000, `${text.length} bytes`)
  assert.doesNotMatch(text, /better.sqlite3|CREATE TABLE/)
})

test('a record in PostgreSQL is asked the short way, too, unless the node is another cache', async (context) => {
  const server = await startPostgresServer()
  context.after(() => server.close())
  const url = await server.makeDatabase()
  const { first, prepareShort } = await makeReadyWorld(context, url)
  assert.deepEqual(await prepareShort('data', '--task', 'second'), { code: 0, stdout: first.stdout })
  const database = await openPostgresDatabase(url)
  await database.write('durable', 'all', async (transaction) => {
    transaction.post(`UPDATE nodes SET identity = replace(identity, '"cacheId":"', '"cacheId":"another-')`)
  })
  await database.close()
  assert.deepEqual(await prepareShort('data', '--task', 'third'), { code: 9, stdout: '' })
  await server.stop('fast')
  assert.deepEqual(await prepareShort('data', '--task', 'third'), { code: 9, stdout: '' })
})

test('after the short way in vain, the whole program still knows what SQLite tells it', async (context) => {
  const { world } = await makeReadyWorld(context)
  const run = promisify(execFile)(process.execPath, ['-e', THEN_PUBLISH], { cwd: world.directory })
  await assert.doesNotReject(run)
})
