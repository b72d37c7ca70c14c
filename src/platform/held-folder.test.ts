import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { DscError } from '../failure/dsc-error.js'
import { countDescriptors } from '../testing/open-descriptors.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { HeldFolder, nameHeldFolder } from './held-folder.js'
import { changeFileMode, onHeldPath, resolveHeldPath } from './held-path.js'

const LEFT_AS_IT_IS = { code: 'CACHE_ROOT_INVALID', message: /it is left as it is/ }

/** A held folder, and one beside it that must stay out of reach through links. */
async function holdFolder(t: TestContext) {
  const base = await temporaryDirectory(t)
  const path = join(base, 'held')
  const outside = join(base, 'outside')
  for (const folder of [path, outside]) mkdirSync(folder)
  writeFileSync(join(outside, 'precious'), 'kept')
  const held = HeldFolder.find(path)!
  t.after(() => held.close())
  return { base, path, outside, held }
}

test('a folder is found by its path; a missing one is undefined', async (t) => {
  const { path, base, held } = await holdFolder(t)
  assert.equal(held.name, path)
  assert.equal(resolveHeldPath(held.path), path)
  assert.equal(HeldFolder.find(join(base, 'nowhere')), undefined)
  assert.equal(held.findFolder('nowhere'), undefined)
  assert.throws(() => HeldFolder.find(join(base, 'outside', 'precious')), LEFT_AS_IT_IS)
})

test('a link on the way to the folder itself is followed: an operator may have put it there', async (t) => {
  const { base, path } = await holdFolder(t)
  symlinkSync(path, join(base, 'link'))
  const found = HeldFolder.find(join(base, 'link'))!
  t.after(() => found.close())
  assert.equal(resolveHeldPath(found.path), path)
})

test('a link or a file in the place of a folder is refused, wherever it leads', async (t) => {
  const { path, outside, held } = await holdFolder(t)
  symlinkSync(outside, join(path, 'link'))
  writeFileSync(join(path, 'file'), '')
  for (const name of ['link', 'file']) {
    assert.throws(() => held.findFolder(name), LEFT_AS_IT_IS)
    assert.throws(() => held.makeFolder(name), LEFT_AS_IT_IS)
    assert.throws(() => onHeldPath(`${held.path}/${name}/precious`, readFileSync), LEFT_AS_IT_IS)
  }
  assert.throws(() => held.refuseLink('link'), { message: /found a symbolic link/ })
  held.refuseLink('file')
  held.refuseLink('nothing')
})

test('what another folder takes the name of is not touched: the held one is', async (t) => {
  const { path, base, outside, held } = await holdFolder(t)
  held.makeFolder('inside').close()
  writeFileSync(join(path, 'precious'), 'ours')
  renameSync(path, join(base, 'renamed'))
  symlinkSync(outside, path)
  assert.equal(resolveHeldPath(held.path), join(base, 'renamed'))
  assert.ok(held.has('inside'))
  held.unlink('precious')
  assert.deepEqual(readdirSync(join(base, 'renamed')), ['inside'])
  await held.remove('inside')
  assert.equal(readFileSync(join(outside, 'precious'), 'utf8'), 'kept')
})

test('names that lead elsewhere are refused', async (t) => {
  const { held } = await holdFolder(t)
  for (const name of ['', '.', '..', 'a/b', '../outside', 'a\0b']) {
    assert.throws(() => held.pathOf(name), LEFT_AS_IT_IS, JSON.stringify(name))
    assert.throws(() => held.findFolder(name), LEFT_AS_IT_IS, JSON.stringify(name))
  }
  for (const name of ['...', '.hidden', 'a b', 'ü']) assert.equal(held.pathOf(name), `${held.path}/${name}`)
})

test('a folder is made where it is missing, and only found where it is there', async (t) => {
  const { path, held } = await holdFolder(t)
  for (const _ of [1, 2]) {
    const made = held.makeFolder('sub')
    writeFileSync(made.pathOf('a'), '')
    made.sync()
    assert.deepEqual(
      made.list().map(({ name }) => name),
      ['a'],
    )
    made.close()
  }
  assert.deepEqual(readdirSync(path), ['sub'])
})

test('an entry moves into another held folder under a new name; false if it is missing', async (t) => {
  const { path, outside, held } = await holdFolder(t)
  const target = HeldFolder.find(outside)!
  t.after(() => target.close())
  writeFileSync(join(path, 'a'), 'moved')
  assert.equal(held.move('a', target, 'b'), true)
  assert.equal(readFileSync(join(outside, 'b'), 'utf8'), 'moved')
  assert.equal(held.move('a', target, 'b'), false)
})

test('removing a tree goes through no link in it, and through folders closed to their owner', async (t) => {
  const { path, outside, held } = await holdFolder(t)
  mkdirSync(join(path, 'tree/closed/deep'), { recursive: true })
  writeFileSync(join(path, 'tree/closed/deep/file'), '')
  symlinkSync(outside, join(path, 'tree/link'))
  symlinkSync(join(outside, 'precious'), join(path, 'tree/closed/link'))
  // More entries than one batch removes between two turns of the event loop.
  for (let at = 0; at < 600; at += 1) writeFileSync(join(path, 'tree', `f${at}`), '')
  chmodSync(join(path, 'tree/closed'), 0o500)
  let turns = 0
  let isRemoved = false
  const count = () => {
    turns += 1
    if (!isRemoved) setImmediate(count)
  }
  setImmediate(count)
  await held.remove('tree')
  isRemoved = true
  assert.ok(turns >= 2, `signals and timers had ${turns} turns`)
  assert.deepEqual(readdirSync(path), [])
  assert.deepEqual(readdirSync(outside), ['precious'])
  await held.remove('tree')
  symlinkSync(outside, join(path, 'link'))
  await held.remove('link')
  assert.deepEqual([readdirSync(path), readdirSync(outside)], [[], ['precious']])
})

test('below a held folder the steps of a path are opened one by one, and made if asked for', async (t) => {
  const { path, outside, held } = await holdFolder(t)
  const deep = `${held.path}/a/b/file`
  const write = (given: string) => writeFileSync(given, 'written')
  assert.throws(() => onHeldPath(deep, write), { code: 'ENOENT' })
  onHeldPath(deep, write, { makesFolders: true })
  assert.equal(readFileSync(join(path, 'a/b/file'), 'utf8'), 'written')
  assert.equal(
    onHeldPath(deep, (given) => readFileSync(given, 'utf8')),
    'written',
  )
  rmSync(join(path, 'a/b'), { recursive: true })
  symlinkSync(outside, join(path, 'a/b'))
  assert.throws(() => onHeldPath(`${held.path}/a/b/precious`, write), LEFT_AS_IT_IS)
  assert.throws(() => onHeldPath(`${held.path}/a/b/new`, write, { makesFolders: true }), LEFT_AS_IT_IS)
  assert.deepEqual(readdirSync(outside), ['precious'])
  assert.equal(readFileSync(join(outside, 'precious'), 'utf8'), 'kept')
})

test('below a held folder no path leads up again, nor out of it', async (t) => {
  const { path, outside, held } = await holdFolder(t)
  const acted: string[] = []
  const before = readdirSync(path)
  for (const way of [`../${basename(outside)}/new`, 'a/../../new', 'a/..', '..', './new', 'a//new', ''])
    assert.throws(
      () => onHeldPath(`${held.path}/${way}`, (given) => acted.push(given), { makesFolders: true }),
      { code: 'CACHE_ROOT_INVALID' },
      way,
    )
  assert.deepEqual(acted, [])
  assert.deepEqual(readdirSync(path), before)
})

test('a path below no held folder is used as it is, its folders made if asked for', async (t) => {
  const { path } = await holdFolder(t)
  const file = join(path, 'x/y')
  assert.throws(() => onHeldPath(file, (given) => writeFileSync(given, '')), { code: 'ENOENT' })
  onHeldPath(file, (given) => writeFileSync(given, ''), { makesFolders: true })
  assert.ok(existsSync(file))
})

test('no descriptor stays open, whether a step succeeds or is refused', async (t) => {
  const { base, path, outside, held } = await holdFolder(t)
  mkdirSync(join(path, 'a/b/c'), { recursive: true })
  symlinkSync(outside, join(path, 'link'))
  const count = () => countDescriptors(base)
  const before = count()
  for (let turn = 0; turn < 20; turn += 1) {
    onHeldPath(`${held.path}/a/b/c/file`, (given) => writeFileSync(given, ''))
    assert.throws(() => onHeldPath(`${held.path}/link/file`, existsSync))
    assert.throws(() => held.findFolder('link'))
    held.sync()
    await held.remove('a')
    mkdirSync(join(path, 'a/b/c'), { recursive: true })
  }
  assert.ok(count() <= before, `${before} before, ${count()} after`)
})

test('the mode of a file is changed, of a link and of a file with another name it is not', async (t) => {
  const { path, outside } = await holdFolder(t)
  const file = join(path, 'file')
  writeFileSync(file, '', { mode: 0o644 })
  assert.equal(changeFileMode(file, 0o444), true)
  assert.equal(statSync(file).mode & 0o777, 0o444)
  const precious = join(outside, 'precious')
  const { mode } = statSync(precious)
  symlinkSync(precious, join(path, 'link'))
  assert.equal(changeFileMode(join(path, 'link'), 0o400), false)
  linkSync(precious, join(path, 'second-name'))
  assert.equal(changeFileMode(join(path, 'second-name'), 0o400), false)
  assert.equal(changeFileMode(outside, 0o400), false)
  assert.equal(statSync(precious).mode, mode)
})

test('a failure tells people the name of a held folder, not its descriptor', async (t) => {
  const { path, held } = await holdFolder(t)
  const failure = new DscError('COPY_DAMAGED', `${held.path}/a: bad`, { hint: 'dsc verify' })
  const named = nameHeldFolder(failure, held) as DscError
  assert.deepEqual([named.code, named.message, named.hint], ['COPY_DAMAGED', `${path}/a: bad`, 'dsc verify'])
  const other = new Error(held.path)
  assert.equal(nameHeldFolder(other, held), other)
})
