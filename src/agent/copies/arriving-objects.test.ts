import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ArrivalServer } from '../../cache/arrivals/arrival-server.js'
import { OrderOfNeed } from '../../cache/arrivals/order-of-need.js'
import { Manifest } from '../../manifest/manifest.js'
import { manifestPath } from '../../manifest/manifest-path.js'
import type { Copy } from '../../model/copy.js'
import type { WireObject } from '../../sources/peer-wire.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { ArrivingObjects } from './arriving-objects.js'

const SIZE_BYTES = 1000
const COUNT = 100

/** A download of `COUNT` objects, none of them present yet, and an agent that looks into it. */
async function stage(t: TestContext) {
  const directory = join(await temporaryDirectory(t), 'staging')
  mkdirSync(directory)
  const manifest = Manifest.create(directory)
  manifest.add(
    Array.from({ length: COUNT }, (_, index) => ({
      ...{
        key: `${index}`,
        sizeBytes: SIZE_BYTES,
        etag: 'e',
        versionId: null,
        checksum: null,
        modifiedAtMs: 0,
      },
    })),
  )
  const stager = await ArrivalServer.open({
    ...{ copyDirectory: directory, need: new OrderOfNeed(COUNT, []), idOf: (key) => manifest.findId(key) },
    isWritten: () => false,
  })
  const arriving = new ArrivingObjects()
  t.after(() => {
    arriving.close()
    stager.close()
    manifest.close()
  })
  const copy = { directory } as Copy
  const ask = (index: number, limitMs: number, etag = 'e') => {
    const object = { key: `${index}`, sizeBytes: SIZE_BYTES, etag, versionId: null } as WireObject
    const question = { object, range: { offset: 0, length: SIZE_BYTES } }
    return arriving.wait(copy, question, { limitMs, urgency: 'listed' })
  }
  /** Records that an object is present, then announces it. */
  const finish = (index: number) => {
    const id = manifest.findId(`${index}`)!
    manifest.finishObject(id, 'sha256', null)
    stager.arrived(id)
  }
  return { directory, stager, ask, finish }
}

test('what is there is handed out, what is not is not waited for without a limit, another version is said so', async (t) => {
  const { ask, finish, directory } = await stage(t)
  finish(3)
  const [there, early, other] = await Promise.all([ask(3, 0), ask(4, 0), ask(3, 0, 'f')])
  assert.ok(typeof there === 'object')
  assert.equal(there.path, `${directory}/files/3`)
  assert.equal(early, 'early')
  assert.equal(other, 'other')
})

test('all that is waited for is handed out as it comes, a hundred by few looks at the manifest', async (t) => {
  const { ask, finish } = await stage(t)
  const looks = t.mock.method(Manifest, 'findPublished')
  const beganMs = performance.now()
  const asked = Array.from({ length: COUNT }, (_, index) => ask(index, 60_000))
  for (let index = 0; index < COUNT; index++) {
    await new Promise((resolve) => setTimeout(resolve, 1))
    finish(index)
  }
  for (const arrived of await Promise.all(asked)) assert.ok(typeof arrived === 'object')
  // One look every 50 ms, plus one a second for everything: a hundred questions announced one by one share looks.
  const seconds = (performance.now() - beganMs) / 1000
  assert.ok(looks.mock.callCount() <= 3 + 21 * seconds, `${looks.mock.callCount()} looks in ${seconds} s`)
})

test('who waits is told to ask again when a staging is published, given up, or nobody stages it', async (t) => {
  const { ask, stager, directory } = await stage(t)
  const asked = [ask(1, 60_000), ask(2, 60_000)]
  await Promise.race([...asked, new Promise((resolve) => setTimeout(resolve, 100))])
  rmSync(manifestPath(directory))
  stager.close()
  assert.deepEqual(await Promise.all(asked), ['early', 'early'])
})

test('where nobody stages, what is written down is found all the same', async (t) => {
  const { ask, finish, stager } = await stage(t)
  stager.close()
  const asked = ask(7, 60_000)
  finish(7)
  assert.ok(typeof (await asked) === 'object')
})

test('a stager that can be asked only later is told what is waited for', async (t) => {
  const { ask, directory, finish, stager } = await stage(t)
  stager.close()
  const asked = ask(7, 60_000)
  await new Promise((resolve) => setTimeout(resolve, 50))
  const { promise: told, resolve: tell } = Promise.withResolvers<unknown>()
  const next = await ArrivalServer.open({
    ...{ copyDirectory: directory, need: new OrderOfNeed(COUNT, []), idOf: (key) => Number(key) + 1 },
    isWritten: () => false,
    onWant: tell,
  })
  t.after(() => next.close())
  assert.equal(await told, 8)
  finish(7)
  assert.ok(typeof (await asked) === 'object')
})
