import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isDscError } from '../failure/dsc-error.js'
import { needsRoot } from '../testing/needs.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { identityFile } from './cache-layout.js'
import { requireOneOwner } from './require-one-owner.js'

const ADA = 64_001
const GROUP = 64_000

const sqliteAt = (path: string) => ({ kind: 'sqlite', url: `sqlite://${path}`, path }) as const

/** A cache of Ada's with its record in it, another record beside it, and what is refused. */
async function makeCache(context: TestContext) {
  const directory = await temporaryDirectory(context)
  const places: Record<string, string> = {
    root: join(directory, 'cache'),
    copies: join(directory, 'cache', 'copies'),
    record: join(directory, 'cache', 'record.db'),
    identity: identityFile(join(directory, 'cache')),
    folder: join(directory, 'state'),
    outside: join(directory, 'state', 'record.db'),
  }
  for (const name of ['root', 'copies', 'folder']) mkdirSync(places[name]!)
  for (const name of ['record', 'identity', 'outside']) writeFileSync(places[name]!, '')
  for (const path of Object.values(places)) chownSync(path, ADA, GROUP)
  const refuse = (record = 'record'): { message: string; hint: string | undefined } | undefined => {
    try {
      requireOneOwner(places.root!, sqliteAt(places[record]!))
    } catch (error) {
      assert.ok(isDscError(error, 'CACHE_ROOT_INVALID'))
      return { message: error.message, hint: error.hint }
    }
    return undefined
  }
  return { places, refuse }
}

test('a cache that its owner alone may write is not refused, and none that is missing', {
  skip: needsRoot,
}, async (context) => {
  const { places, refuse } = await makeCache(context)
  assert.equal(refuse(), undefined)
  assert.equal(refuse('outside'), undefined)
  requireOneOwner(join(places.root!, 'none'), sqliteAt(join(places.root!, 'no', 'record.db')))
  requireOneOwner(places.root!, { kind: 'postgres', url: 'postgres://db/dsc' })
})

for (const { what, place, mode, who } of [
  { what: 'a root of its group', place: 'root', mode: 0o2775, who: `the group ${GROUP}` },
  { what: 'a root of everybody', place: 'root', mode: 0o777, who: 'everybody' },
  { what: 'copies of its group', place: 'copies', mode: 0o775, who: `the group ${GROUP}` },
  { what: 'a record of its group', place: 'record', mode: 0o664, who: `the group ${GROUP}` },
])
  test(`${what} is refused by name, with the command that hands the cache over`, {
    skip: needsRoot,
  }, async (context) => {
    const { places, refuse } = await makeCache(context)
    const path = places[place]!
    chmodSync(path, mode)
    assert.deepEqual(refuse(), {
      message: `${who} may write to ${path} (mode ${mode.toString(8)}, owner ${ADA})`,
      hint: `sudo chown -R ${ADA} ${places.root} && sudo chmod -R go-w ${places.root}; everybody else asks dsc agent`,
    })
  })

for (const { what, mode, isCache } of [
  { what: 'a folder such as /tmp with a cache in it', mode: 0o1777, isCache: true },
  { what: 'a folder such as /tmp', mode: 0o1777, isCache: false },
  { what: 'a folder that is no cache yet', mode: 0o777, isCache: false },
])
  test(`${what} is not handed over: what else lies there may be others’`, {
    skip: needsRoot,
  }, async (context) => {
    const { places, refuse } = await makeCache(context)
    chownSync(places.root!, 0, 0)
    chmodSync(places.root!, mode)
    if (!isCache) rmSync(places.identity!)
    assert.deepEqual(refuse(), {
      message: `everybody may write to ${places.root} (mode ${mode.toString(8)}, owner root)`,
      hint: `set cache.root to a folder of your own in it, such as ${join(places.root!, 'dsc')}`,
    })
  })

test('a folder of a group in a user’s cache becomes that user’s', { skip: needsRoot }, async (context) => {
  const { places, refuse } = await makeCache(context)
  chownSync(places.copies!, 0, GROUP)
  chmodSync(places.copies!, 0o2775)
  assert.match(refuse()?.hint ?? '', new RegExp(`^sudo chown -R ${ADA} `))
})

test('a folder that root made for a group becomes the service’s', { skip: needsRoot }, async (context) => {
  const { places, refuse } = await makeCache(context)
  chownSync(places.root!, 0, GROUP)
  chmodSync(places.root!, 0o2775)
  assert.match(refuse()?.hint ?? '', /^sudo chown -R dsc:dsc /)
})

test('an empty folder that a package made for a group becomes the service’s', {
  skip: needsRoot,
}, async (context) => {
  const { places, refuse } = await makeCache(context)
  for (const name of ['copies', 'record', 'identity']) rmSync(places[name]!, { recursive: true })
  chownSync(places.root!, 0, GROUP)
  chmodSync(places.root!, 0o2775)
  assert.match(refuse()?.hint ?? '', /^sudo chown -R dsc:dsc /)
  writeFileSync(join(places.root!, 'thesis.tex'), '')
  assert.match(refuse()?.hint ?? '', /^set cache\.root to a folder of your own/)
})

test('a private group, as umask 002 has it, and the group of root are not others', {
  skip: needsRoot,
}, async (context) => {
  const { places, refuse } = await makeCache(context)
  chmodSync(places.root!, 0o775)
  for (const [uid, gid] of [
    [ADA, ADA],
    [ADA, 0],
    [0, 0],
  ] as const) {
    chownSync(places.root!, uid, gid)
    assert.equal(refuse(), undefined)
  }
  chownSync(places.root!, ADA, GROUP)
  assert.notEqual(refuse(), undefined)
})

test('a record elsewhere is judged by its folder, too, unless that is one such as /tmp', {
  skip: needsRoot,
}, async (context) => {
  const { places, refuse } = await makeCache(context)
  chmodSync(places.folder!, 0o777)
  assert.match(refuse('outside')?.message ?? '', /^everybody may write to .*\/state \(/)
  chmodSync(places.folder!, 0o1777)
  assert.equal(refuse('outside'), undefined)
  chmodSync(places.outside!, 0o666)
  assert.equal(refuse('outside')?.hint, `chmod go-w ${places.outside}`)
})
