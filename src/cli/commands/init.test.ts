import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { needsTerminal } from '../../testing/needs.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'dsc-init-'))
after(() => rmSync(root, { recursive: true }))

function dsc(cwd: string, ...args: string[]) {
  const environment = { PATH: process.env.PATH, HOME: root }
  return spawnSync(process.execPath, [DSC, ...args], { cwd, env: environment, encoding: 'utf8' })
}

test('dsc init writes a file that dsc config accepts, and refuses to replace it without --yes', () => {
  const folder = mkdtempSync(join(root, 'a-'))
  const first = dsc(folder, 'init', '--cache-root', 'cache', '--max-percent', '70', '--min-free', '1GiB')
  assert.equal(first.status, 0, first.stderr)
  assert.equal(first.stdout.trim(), join(folder, 'dsc.yaml'))
  assert.deepEqual(readdirSync(folder), ['dsc.yaml'])

  const shown = JSON.parse(dsc(folder, 'config', '--json').stdout) as {
    settings: { key: string; value: unknown }[]
  }
  const values = Object.fromEntries(shown.settings.map(({ key, value }) => [key, value]))
  assert.equal(values['cache.root'], join(folder, 'cache'))
  assert.equal(values['cache.maxPercent'], 70)
  assert.equal(values['cache.minFree'], 2 ** 30)
  assert.equal(values.node, hostname().split('.')[0])

  const before = readFileSync(join(folder, 'dsc.yaml'), 'utf8')
  const second = dsc(folder, 'init', '--cache-root', 'other')
  assert.equal(second.status, 2, second.stderr)
  assert.match(second.stderr, /dsc\.yaml exists already.*\n {2}try: dsc init --yes/)
  assert.equal(readFileSync(join(folder, 'dsc.yaml'), 'utf8'), before)
  assert.equal(dsc(folder, 'init', '--cache-root', 'other', '--yes').status, 0)
  assert.match(readFileSync(join(folder, 'dsc.yaml'), 'utf8'), /root: .*\/other/)
})

for (const { name, args, environment } of [
  { name: '--config after it', args: ['init', '--config', 'there/a.yaml'], environment: {} },
  { name: '--config before it', args: ['--config=there/a.yaml', 'init'], environment: {} },
  { name: 'DSC_CONFIG', args: ['init'], environment: { DSC_CONFIG: 'there/a.yaml' } },
]) {
  test(`dsc init --yes writes the file of ${name} and leaves ./dsc.yaml alone`, () => {
    const folder = mkdtempSync(join(root, 'f-'))
    writeFileSync(join(folder, 'dsc.yaml'), '# mine\n')
    const run = spawnSync(process.execPath, [DSC, ...args, '--yes', '--cache-root', 'cache'], {
      cwd: folder,
      env: { PATH: process.env.PATH, HOME: root, ...environment },
      encoding: 'utf8',
    })
    assert.equal(run.stdout.trim(), join(folder, 'there/a.yaml'), run.stderr)
    assert.equal(readFileSync(join(folder, 'dsc.yaml'), 'utf8'), '# mine\n')
    assert.match(readFileSync(join(folder, 'there/a.yaml'), 'utf8'), /^# Configuration of dsc/)
  })
}

test('dsc init --dry-run prints the file and writes nothing', () => {
  const folder = mkdtempSync(join(root, 'b-'))
  const run = dsc(folder, 'init', '--dry-run', '--config', 'sub/dsc.yaml')
  assert.equal(run.status, 0, run.stderr)
  assert.match(run.stdout, /^# Configuration of dsc/)
  assert.match(run.stdout, /maxPercent: 80/)
  assert.equal(existsSync(join(folder, 'sub')), false)
})

test('dsc init asks at a terminal, takes what was typed ahead, and asks again after a mistake', {
  skip: needsTerminal(),
  timeout: 30_000,
}, async () => {
  const folder = mkdtempSync(join(root, 'd-'))
  const command = `'${process.execPath}' '${DSC}' init`
  const terminal = spawn('script', ['-qfec', command, '/dev/null'], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: root, TERM: 'dumb' },
  })
  let screen = ''
  for await (const chunk of terminal.stdout) {
    const wasAsking = screen.includes('Folder for the copies')
    screen += String(chunk)
    if (!wasAsking && screen.includes('Folder for the copies')) terminal.stdin.write('/c\n700\n70\ngpu-01\n')
  }
  assert.match(screen, /expected a percentage above 0 and up to 100, found "700"/)
  const text = readFileSync(join(folder, 'dsc.yaml'), 'utf8')
  assert.match(text, /^node: gpu-01\b/m)
  assert.match(text, /^ {2}root: \/c$/m)
  assert.match(text, /^ {2}maxPercent: 70\b/m)
})

test('dsc init refuses values that dsc would not accept', () => {
  const folder = mkdtempSync(join(root, 'c-'))
  assert.equal(dsc(folder, 'init', '--max-percent', '120').status, 2)
  assert.equal(dsc(folder, 'init', '--max-percent', '50', '--low-water-percent', '60').status, 3)
  assert.deepEqual(readdirSync(folder), [])
})

test('dsc init says how to go on with the record that was used without a dsc.yaml', () => {
  const folder = mkdtempSync(join(root, 'e-'))
  const environment = { PATH: process.env.PATH, HOME: folder }
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [DSC, ...args], { cwd: folder, env: environment, encoding: 'utf8' })
  assert.equal(run('dataset', 'add', 'flowers', 's3://bucket/flowers/').status, 0)
  const init = run('init', '--cache-root', 'cache')
  const told = /dsc (record migrate \S+ \S+)\n/.exec(init.stderr)?.[1]
  assert.ok(told, init.stderr)
  assert.equal(run(...told.split(' ')).status, 0)
  assert.match(run('dataset', 'ls').stdout, /^flowers /m)
})

/** A user who prepared a dataset without a dsc.yaml: runs of dsc in folders of theirs. */
function makeNewcomer() {
  const home = mkdtempSync(join(root, 'h-'))
  for (const folder of ['a', 'b', 'flowers']) mkdirSync(join(home, folder))
  writeFileSync(join(home, 'flowers/a.txt'), 'a')
  const environment = { PATH: process.env.PATH, HOME: home }
  const run = (folder: string, ...args: string[]) =>
    spawnSync(process.execPath, [DSC, ...args], {
      cwd: join(home, folder),
      env: environment,
      encoding: 'utf8',
    })
  const prepare = (folder: string) => run(folder, 'prepare', '../flowers', '--task', 'job')
  const references = (folder: string) =>
    JSON.parse(run(folder, 'status', '--json').stdout).copies[0]?.referenceCount
  return { home, cache: join(home, '.cache/dsc'), run, prepare, references }
}

for (const isUsed of [true, false]) {
  test(`dsc init for the cache of one’s own keeps one record, ${isUsed ? 'used before' : 'or new'}`, () => {
    const { home, cache, run, prepare, references } = makeNewcomer()
    if (isUsed) assert.equal(prepare('b').status, 0)
    const init = run('a', 'init', '--cache-root', cache, '--max-datasets', '2', '--yes')
    assert.doesNotMatch(init.stderr, /migrate/)
    const written = readFileSync(join(home, 'a/dsc.yaml'), 'utf8')
    assert.ok(written.includes(`\nrecord: ${home}/.local/state/dsc/record.db `), written)
    assert.match(written, /^ {2}maxDatasets: 2 /m)
    assert.match(written, /^ {2}maxPercent: 80 /m)
    assert.equal(prepare('a').status, 0)
    const elsewhere = prepare('b')
    assert.equal(elsewhere.status, 0, elsewhere.stderr)
    assert.deepEqual([references('a'), references('b')], [1, 1])
    assert.equal(run('b', 'release', '--all', '--task', 'job').status, 0)
    assert.deepEqual([references('a'), references('b')], [0, 0])
  })
}

test('where another record governs the cache, dsc says so and which command mends it', () => {
  const { home, cache, run, prepare, references } = makeNewcomer()
  writeFileSync(join(home, 'a/dsc.yaml'), `cache: { root: ${cache}, maxDatasets: 2 }\n`)
  assert.equal(prepare('b').status, 0)
  const here = prepare('a')
  assert.equal(here.status, 3)
  assert.equal(here.stderr.match(/governed by/g)?.length, 1)
  assert.match(here.stderr, /try: set record: \S+\/\.local\/state\/dsc\/record\.db in \S+\/a\/dsc\.yaml;/)
  for (const words of [['status'], ['leases'], ['history'], ['release', '--all', '--task', 'other']])
    assert.match(run('a', ...words).stderr, /is governed by \S+\/\.local\/state\/dsc\/record\.db; /, words[0])
  assert.doesNotMatch(run('b', 'status').stderr, /governed/)
  assert.doesNotMatch(
    run('a', 'status', '--record', 'record.db').stderr,
    /governed/,
    'which the user asked for',
  )

  assert.equal(
    run('a', 'record', 'migrate', '../.local/state/dsc/record.db', `${cache}/record.db`).stderr,
    '',
  )
  const elsewhere = prepare('b')
  const command = /try: dsc (init --config \S+ --cache-root \S+);/.exec(elsewhere.stderr)?.[1]
  assert.ok(command, elsewhere.stderr)
  assert.equal(run('b', ...command.split(' ')).status, 0)
  assert.equal(prepare('b').status, 0)
  assert.deepEqual([references('a'), references('b')], [1, 1])
})
