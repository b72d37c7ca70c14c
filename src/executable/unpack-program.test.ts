import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { type CarriedProgram, unpackProgram } from './unpack-program.js'

const CONTENTS: Readonly<Record<string, string>> = { 'bin/dsc.js': 'first', 'dist/chunk.js': 'later' }
const program: CarriedProgram = {
  id: '1.0.0-abc',
  files: Object.entries(CONTENTS).map(([path, text]) => ({
    path,
    sha256: hash('sha256', text),
    isFirst: path === 'bin/dsc.js',
  })),
}
const read = (path: string) => Buffer.from(CONTENTS[path]!)
const places = (...writable: string[]) => ({ installed: [], writable })

test('a program is unpacked once, readable by its user alone', async (context) => {
  const place = join(await temporaryDirectory(context), 'cache')
  const folder = unpackProgram(program, places(place), read)
  assert.equal(folder, join(place, '1.0.0-abc'))
  for (const [path, text] of Object.entries(CONTENTS)) {
    assert.equal(readFileSync(join(folder, path), 'utf8'), text)
  }
  const again = unpackProgram(program, places(place), () => assert.fail('it was unpacked again'))
  assert.equal(again, folder)
  assert.deepEqual(readdirSync(place), ['1.0.0-abc'])
})

test('a program that was damaged is unpacked again', async (context) => {
  const place = await temporaryDirectory(context)
  const folder = unpackProgram(program, places(place), read)
  for (const damage of [
    () => writeFileSync(join(folder, 'bin/dsc.js'), 'evil'),
    () => rmSync(join(folder, 'bin/dsc.js')),
  ]) {
    damage()
    assert.equal(unpackProgram(program, places(place), read), folder)
    assert.equal(readFileSync(join(folder, 'bin/dsc.js'), 'utf8'), 'first')
    assert.deepEqual(readdirSync(place), ['1.0.0-abc'])
  }
})

test('a program is digested again only after one of its files has changed', async (context) => {
  const place = await temporaryDirectory(context)
  const folder = unpackProgram(program, places(place), read)
  assert.equal(unpackProgram(program, places(place), read), folder)
  const checked = readFileSync(join(folder, '.checked'), 'utf8')
  assert.equal(unpackProgram(program, places(place), read), folder)
  assert.equal(readFileSync(join(folder, '.checked'), 'utf8'), checked)
  const { atime, mtime } = statSync(join(folder, 'bin/dsc.js'))
  await sleep(20)
  writeFileSync(join(folder, 'bin/dsc.js'), 'fir5t')
  utimesSync(join(folder, 'bin/dsc.js'), atime, mtime)
  unpackProgram(program, places(place), read)
  assert.equal(readFileSync(join(folder, 'bin/dsc.js'), 'utf8'), 'first')
})

test('a folder that others may write is passed over', async (context) => {
  const directory = await temporaryDirectory(context)
  const shared = join(directory, 'shared')
  mkdirSync(shared)
  chmodSync(shared, 0o777)
  const folder = unpackProgram(program, places(shared, join(directory, 'own')), read)
  assert.equal(folder, join(directory, 'own/1.0.0-abc'))
  assert.deepEqual(readdirSync(shared), [])
})

test('where the home cannot hold it, the next place does; where none can, each says why', async (context) => {
  const directory = await temporaryDirectory(context)
  writeFileSync(join(directory, 'file'), '')
  const impossible = join(directory, 'file/cache') // as a home that cannot be written, also for root
  assert.equal(
    unpackProgram(program, places(impossible, join(directory, 'next')), read),
    join(directory, 'next/1.0.0-abc'),
  )
  assert.throws(() => unpackProgram(program, places(impossible), read), /file\/cache: ENOTDIR/)
})

test('what a package installed is used where it lies', async (context) => {
  const installed = await temporaryDirectory(context)
  unpackProgram(program, places(installed), read)
  const home = join(installed, 'home')
  const folder = unpackProgram(program, { installed: [installed], writable: [home] }, read)
  assert.equal(folder, join(installed, '1.0.0-abc'))
  assert.ok(!existsSync(home))
})

/** Makes a folder beside the program that was last used so many days ago. */
function makeOld(place: string, name: string, days: number) {
  mkdirSync(join(place, name, 'bin'), { recursive: true })
  utimesSync(join(place, name), Date.now() / 1000, Date.now() / 1000 - days * 86_400)
}

test('a new version removes those that nobody has used for a month, and nothing else', async (context) => {
  const place = await temporaryDirectory(context)
  makeOld(place, '0.9.0-0123456789abcdef', 31)
  makeOld(place, '.0.9.0-0123456789abcdef-77-0a0b0c', 31)
  makeOld(place, '0.9.1-0123456789abcdef', 29)
  makeOld(place, 'somebody-elses', 31)
  unpackProgram(program, places(place), read)
  assert.deepEqual(readdirSync(place).toSorted(), ['0.9.1-0123456789abcdef', '1.0.0-abc', 'somebody-elses'])
})

test('a start says that its version is used', async (context) => {
  const place = await temporaryDirectory(context)
  const folder = unpackProgram(program, places(place), read)
  utimesSync(folder, 0, 0)
  unpackProgram(program, places(place), read)
  assert.ok(Date.now() - statSync(folder).mtimeMs < 60_000)
})

test('many that start for the first time at once all find it whole', async (context) => {
  const place = await temporaryDirectory(context)
  const script = `
    const { unpackProgram } = await import(${JSON.stringify(new URL('./unpack-program.js', import.meta.url).href)})
    const { readFileSync } = await import('node:fs')
    const contents = ${JSON.stringify(CONTENTS)}
    const folder = unpackProgram(${JSON.stringify(program)}, { installed: [], writable: [${JSON.stringify(place)}] }, (path) => Buffer.from(contents[path]))
    console.log(folder, ...Object.keys(contents).map((path) => readFileSync(folder + '/' + path, 'utf8')))`
  const starts = Array.from({ length: 12 }, () =>
    promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]),
  )
  for (const { stdout } of await Promise.all(starts)) {
    assert.equal(stdout, `${join(place, '1.0.0-abc')} first later\n`)
  }
  assert.deepEqual(readdirSync(place), ['1.0.0-abc'])
})
