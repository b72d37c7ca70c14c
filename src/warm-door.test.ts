import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openService, prepareAs, silently } from './testing/door-service.js'
import { temporaryDirectory } from './testing/temporary-directory.js'

const BUNDLE = fileURLToPath(new URL('./warm-door.cjs', import.meta.url))
/** Writes what came of it, and what of Node it loaded, to its last line on stderr. */
const SHORT_WAY = `const before = process.moduleLoadList.length
  require(${JSON.stringify(BUNDLE)}).prepareAtDoor(['prepare', ...process.argv.slice(1)], () => '0').then((outcome) => {
    const loaded = process.moduleLoadList.slice(before).filter((name) => !name.includes('internal/'))
    process.stderr.write('\\n' + JSON.stringify({ outcome, loaded }))
  })`

async function openReady(context: TestContext) {
  const service = await openService(context)
  const { api } = service.as(64_001)
  const { copy } = await api.prepare({ ...prepareAs('first'), dataset: service.flowers }, silently)
  const folder = await temporaryDirectory(context)
  const prepareShort = (
    words: readonly string[],
    environment: Readonly<Record<string, string>> = { DSC_DOOR: service.path },
  ) =>
    new Promise<{ stdout: string; notes: string; outcome: unknown; loaded: readonly string[] }>((resolve) => {
      const env = { HOME: folder, USER: 'ada', ...environment }
      execFile(process.execPath, ['-e', SHORT_WAY, ...words], { cwd: folder, env }, (_, stdout, stderr) => {
        const [notes = '', last = ''] = stderr.split(/\n(?=[^\n]*$)/)
        resolve({ stdout, notes, ...JSON.parse(last) })
      })
    })
  return { ...service, copy, folder, prepareShort }
}

test('a copy that the service has ready is leased from one small file, which loads little of Node', async (context) => {
  const { copy, cache, prepareShort } = await openReady(context)
  const { stdout, outcome, loaded } = await prepareShort(['flowers', '--task', 'second'])
  assert.deepEqual([outcome, stdout], ['done', `${copy.path}\n`])
  const tasks = (await cache.record.listLeases({ purpose: 'use' })).map(({ task }) => task)
  assert.deepEqual(tasks.toSorted(), ['first', 'second'])
  // The bar is 1.35 × `node -e 0` (bench warm): a loaded module or 10 kB of text more take 3 % each.
  const modules = loaded.filter((name) => name.startsWith('NativeModule '))
  assert.deepEqual(
    modules
      .map((name) => name.slice('NativeModule '.length))
      .filter((name) => !/^stream|string_dec/.test(name)),
    ['os', 'net'],
  )
  assert.ok(statSync(BUNDLE).size < 18_000, `${statSync(BUNDLE).size} bytes`)
})

test('it says the same as the whole program: until when a process has the lease, and JSON', async (context) => {
  const { copy, prepareShort } = await openReady(context)
  const held = await prepareShort(['flowers'])
  assert.deepEqual([held.outcome, held.stdout], ['done', `${copy.path}\n`])
  const { stdout, notes } = await prepareShort(['flowers', '--json', '--task=third'])
  const answer = JSON.parse(stdout)
  assert.deepEqual([answer.dsc, answer.path, answer.lease.task, notes], [1, copy.path, 'third', ''])
})

test('whatever is not that simple is left to the whole program, and a cache of one’s own to its own way', async (context) => {
  const { path, cache, folder, prepareShort } = await openReady(context)
  const outcomeOf = async (words: readonly string[], environment?: Readonly<Record<string, string>>) =>
    (await prepareShort(words, environment)).outcome
  for (const words of [['birds'], ['flowers', '--refresh'], ['flowers', '--ttl', 'soon'], []])
    assert.equal(await outcomeOf(words), 'asked', words.join(' '))
  for (const environment of [
    { DSC_DOOR: path, DSC_LOG: 'debug' },
    { DSC_DOOR: join(folder, 'nowhere.sock') },
  ])
    assert.equal(await outcomeOf(['flowers', '--task', 'x'], environment), 'asked')
  // Of root the service believes for whom a job runs, which only the whole program tells it.
  const way = process.geteuid?.() === 0 ? 'asked' : 'done'
  for (const ofJob of [{ SLURM_JOB_USER: 'ada' }, { SLURM_JOB_ACCOUNT: 'vision' }])
    assert.equal(await outcomeOf(['flowers', '--task', 'second'], { DSC_DOOR: path, ...ofJob }), way)
  for (const environment of [{ DSC_DOOR: 'none' }, { DSC_RECORD: 'record.db' }, { DSC_CACHE_ROOT: 'cache' }])
    assert.deepEqual(await outcomeOf(['flowers', '--task', 'x'], environment), {})
  const config = join(realpathSync(folder), 'dsc.yaml')
  writeFileSync(config, 'datasets: {}\n')
  assert.deepEqual(await outcomeOf(['flowers', '--task', 'x'], {}), { config }, 'the file is found once')
  assert.equal(await outcomeOf(['flowers', '--task', 'second']), 'done', 'DSC_DOOR counts before a file')
  assert.equal((await cache.record.listLeases({ purpose: 'use' })).length, 2)
})
