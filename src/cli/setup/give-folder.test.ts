import assert from 'node:assert/strict'
import { chmodSync, chownSync, lchownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { needsRoot } from '../../testing/needs.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { giveFolder } from './give-folder.js'

const SERVICE = { uid: 64_010, gid: 64_010 }
const EVE = 64_003
const skip = needsRoot

function look(path: string) {
  const { uid, gid, mode } = statSync(path)
  return [uid, gid, (mode & 0o7777).toString(8)]
}

async function openFolder(context: TestContext) {
  const folder = await temporaryDirectory(context)
  return (...names: readonly string[]) => join(folder, ...names)
}

test('the service gets a folder, and root keeps those above', { skip }, async (context) => {
  const at = await openFolder(context)
  giveFolder(at('nvme', 'dsc'), SERVICE)
  assert.deepEqual(look(at('nvme', 'dsc')), [SERVICE.uid, SERVICE.gid, '755'])
  assert.equal(statSync(at('nvme')).uid, 0)
  giveFolder(at('nvme', 'dsc'), SERVICE) // a setup that was stopped goes on
})

test('an empty folder of root’s that others could write is the service’s alone afterwards', {
  skip,
}, async (context) => {
  const at = await openFolder(context)
  mkdirSync(at('dsc'))
  chmodSync(at('dsc'), 0o2777)
  giveFolder(at('dsc'), SERVICE)
  assert.deepEqual(look(at('dsc')), [SERVICE.uid, SERVICE.gid, '755'])
})

for (const { what, make, message } of [
  {
    what: 'a link of another user on the way',
    message: /dsc lies in .*\/way of uid 64003/,
    make: (at: (...names: string[]) => string) => {
      symlinkSync(at('roots'), at('way'))
      lchownSync(at('way'), EVE, EVE)
    },
  },
  {
    what: 'a link of root’s into a folder of another user',
    message: /roots\/dsc lies in .*\/roots of uid 64003/,
    make: (at: (...names: string[]) => string) => {
      chownSync(at('roots'), EVE, EVE)
      symlinkSync(at('roots'), at('way'))
    },
  },
  {
    what: 'a folder of another user',
    message: /dsc belongs to uid 64003, expected an empty folder of root/,
    make: (at: (...names: string[]) => string) => {
      symlinkSync(at('roots'), at('way'))
      chownSync(at('roots', 'dsc'), EVE, EVE)
    },
  },
  {
    what: 'a folder of root’s that has something',
    message: /dsc belongs to uid 0 and has files/,
    make: (at: (...names: string[]) => string) => {
      symlinkSync(at('roots'), at('way'))
      writeFileSync(at('roots', 'dsc', 'x'), '')
    },
  },
])
  test(`${what} is not given away`, { skip }, async (context) => {
    const at = await openFolder(context)
    mkdirSync(at('roots', 'dsc'), { recursive: true })
    make(at)
    const before = look(at('roots', 'dsc'))
    assert.throws(() => giveFolder(at('way', 'dsc'), SERVICE), { code: 'CACHE_ROOT_INVALID', message })
    assert.deepEqual(look(at('roots', 'dsc')), before)
  })
