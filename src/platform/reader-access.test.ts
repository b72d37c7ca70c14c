import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { needsRoot } from '../testing/needs.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { letEverybodyIn, letIn, type SetList } from './reader-access.js'

const [ADA, BOB, EVE, VISION] = [64_001, 64_002, 64_003, 64_100]
const withoutLists: SetList = () => false

/** A folder of a copy with one file that everybody may read, as far as its own mode says. */
async function makeCopy(context: TestContext): Promise<string> {
  const directory = await temporaryDirectory(context)
  chmodSync(directory, 0o755)
  const folder = join(directory, 'copy')
  mkdirSync(folder, { mode: 0o755 })
  writeFileSync(join(folder, 'rose'), 'rose', { mode: 0o644 })
  return folder
}

function mayRead(folder: string, uid: number, gid = uid): boolean {
  const { status } = spawnSync('cat', [join(folder, 'rose')], { uid, gid })
  return status === 0
}

test('a folder is open to its readers alone, also after these change', { skip: needsRoot }, async (t) => {
  const folder = await makeCopy(t)
  const look = () => [
    mayRead(folder, ADA),
    mayRead(folder, BOB),
    mayRead(folder, EVE),
    mayRead(folder, EVE, VISION),
  ]
  assert.deepEqual(look(), [true, true, true, true])
  letIn(folder, { users: [BOB, ADA], groups: [VISION] })
  assert.deepEqual(look(), [true, true, false, true])
  letIn(folder, { users: [], groups: [VISION] })
  assert.deepEqual(look(), [false, false, false, true])
  letIn(folder, { users: [], groups: [] })
  assert.deepEqual(look(), [false, false, false, false])
  letEverybodyIn(folder, 0o755)
  assert.deepEqual(look(), [true, true, true, true])
})

test('where the file system has no lists, one group is let in by the mode', {
  skip: needsRoot,
}, async (t) => {
  const folder = await makeCopy(t)
  letIn(folder, { users: [], groups: [VISION] }, withoutLists)
  const { mode, gid } = statSync(folder)
  assert.deepEqual([mode & 0o7777, gid], [0o750, VISION])
  assert.deepEqual([mayRead(folder, EVE, VISION), mayRead(folder, EVE)], [true, false])
})

test('more than a mode can say is refused there, and the folder is closed', async (t) => {
  const folder = await makeCopy(t)
  for (const readers of [
    { users: [ADA], groups: [] },
    { users: [ADA], groups: [VISION] },
    { users: [], groups: [VISION, ADA] },
  ])
    assert.throws(() => letIn(folder, readers, withoutLists), {
      code: 'CACHE_ROOT_INVALID',
      message: /has no access control lists/,
      hint: /one group/,
    })
  assert.equal(statSync(folder).mode & 0o7777, 0o700)
})

test('a group that the owner is not in is named, with what to do', { skip: needsRoot }, async (t) => {
  const folder = await makeCopy(t)
  chownSync(folder, ADA, ADA)
  process.seteuid!(ADA)
  try {
    assert.throws(() => letIn(folder, { users: [], groups: [VISION] }, withoutLists), {
      message: new RegExp(`the group ${VISION} \\(EPERM\\): .* user ${ADA} is not in that group`),
      hint: /member of the group/,
    })
  } finally {
    process.seteuid!(0)
  }
  assert.equal(statSync(folder).mode & 0o7777, 0o700)
})
