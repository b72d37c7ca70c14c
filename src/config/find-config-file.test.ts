import assert from 'node:assert/strict'
import { chmodSync, chownSync, lchownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { findConfigFile } from './find-config-file.js'

const me = { uid: process.geteuid!(), gid: process.getegid!() }

/** A home folder with `project/deep` in it, where the search starts, and dsc.yaml in `project`. */
async function arrange(t: Parameters<typeof temporaryDirectory>[0]) {
  const home = await temporaryDirectory(t)
  const project = join(home, 'project')
  const work = join(project, 'deep')
  mkdirSync(work, { recursive: true })
  for (const folder of [home, project, work]) chmodSync(folder, 0o755)
  const file = join(project, 'dsc.yaml')
  writeFileSync(file, 'node: a\n', { mode: 0o644 })
  chmodSync(file, 0o644)
  const find = (user = me, homeDirectory = home) =>
    findConfigFile({ explicitPath: undefined, environment: {}, workingDirectory: work, homeDirectory, user })
  return { home, project, work, file, find }
}

test('findConfigFile takes a dsc.yaml of a parent where nobody else could have written it', async (t) => {
  const { file, find } = await arrange(t)
  assert.deepEqual(find(), { path: file, ignored: undefined })
})

for (const { name, mode, of } of [
  { name: 'a file that everybody may write', mode: 0o646, of: 'file' },
  { name: 'a file that a group may write', mode: 0o664, of: 'file' },
  { name: 'a folder that everybody may write to', mode: 0o757, of: 'project' },
  { name: 'a sticky folder that everybody may write to', mode: 0o1777, of: 'project' },
  { name: 'a folder that a group may write to', mode: 0o2775, of: 'project' },
] as const) {
  test(`findConfigFile ignores ${name}, and says so`, async (t) => {
    const arranged = await arrange(t)
    const path = arranged[of]
    chmodSync(path, mode)
    // The root group has only trusted members, so the group with write permission must be another.
    if (me.uid === 0) chownSync(path, 0, 4711)
    const { path: found, ignored } = arranged.find({ uid: me.uid, gid: me.gid + 1 })
    assert.notEqual(found, arranged.file)
    assert.equal(ignored?.path, arranged.file)
    assert.match(ignored?.reason ?? '', new RegExp(`may write to ${path}$`))
  })
}

test("findConfigFile believes a user's private group, which umask 002 lets write", async (t) => {
  if (me.uid !== 0) return t.skip('needs root to give files to another user')
  const { home, project, work, file, find } = await arrange(t)
  for (const path of [home, project, work, file]) chownSync(path, 4711, 4711)
  for (const path of [project, work]) chmodSync(path, 0o775)
  chmodSync(file, 0o664)
  assert.equal(find({ uid: 4711, gid: 4711 }).path, file)
  assert.match(find({ uid: 4711, gid: 100 }).ignored?.reason ?? '', /the group 4711 may write to/)
})

test('findConfigFile takes a higher file past a folder that others may write to', async (t) => {
  const { work, file, find } = await arrange(t)
  const planted = join(work, 'dsc.yaml')
  writeFileSync(planted, 'node: planted\n')
  chmodSync(work, 0o1777)
  assert.deepEqual(find(), {
    path: file,
    ignored: { path: planted, reason: `everybody may write to ${work}` },
  })
})

test("findConfigFile goes no further than a stranger's folder, whatever lies above it", async (t) => {
  if (me.uid !== 0) return t.skip('needs root to give files to another user')
  const { work, file, find } = await arrange(t)
  assert.equal(find({ uid: 4711, gid: 4711 }).path, file, 'everybody believes root')
  chownSync(work, 4712, 4712)
  assert.notEqual(find({ uid: 4711, gid: 4711 }).path, file)
})

test('findConfigFile follows an own link, and ignores one that somebody else made', async (t) => {
  const { home, work, find } = await arrange(t)
  const link = join(work, 'dsc.yaml')
  writeFileSync(join(home, 'mine.yaml'), 'node: a\n', { mode: 0o644 })
  symlinkSync(join(home, 'mine.yaml'), link)
  assert.equal(find().path, link)
  if (me.uid !== 0) return t.skip('needs root to make a link of another user')
  lchownSync(link, 4711, 4711)
  assert.deepEqual(find().ignored, { path: link, reason: `${link} belongs to another user (uid 4711)` })
})

test('findConfigFile looks no higher than the home folder', async (t) => {
  const { project, work, file, find } = await arrange(t)
  assert.equal(find(me, project).path, file)
  assert.notEqual(find(me, work).path, file)
})
