import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { FailureCode } from '../../failure/failure-table.js'
import { parseSigningKey } from '../../proof/minisign.js'
import { succeeds } from '../../testing/dsc-processes.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { needsRoot } from '../../testing/needs.js'
import { type KeyPair, makeKeyPair, makeRelease, OWN_NAME, pretendDsc } from '../../testing/signed-release.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { makeWorld, waitFor } from '../../testing/world.js'
import { replaceExecutable } from './replace-executable.js'
import { requireStandalone, updateExecutable } from './update-executable.js'

const OLD = pretendDsc('0.1.0')
const NEW = pretendDsc('0.2.0')

interface Place {
  readonly folder: string
  readonly bin: string
  readonly executable: string
  readonly release: string
  readonly key: KeyPair
}

/** An installed executable that says 0.1.0, and a signed release of 0.2.0. */
async function makePlace(context: Pick<TestContext, 'after'>, executable = NEW): Promise<Place> {
  const folder = await temporaryDirectory(context)
  const [bin, release] = [join(folder, 'bin'), join(folder, 'release')]
  mkdirSync(bin)
  const place = { folder, bin, executable: join(bin, 'dsc'), release, key: makeKeyPair(join(folder, 'key')) }
  writeFileSync(place.executable, OLD)
  chmodSync(place.executable, 0o751)
  await makeRelease(release, { key: place.key, executable })
  return place
}

function update(place: Place, changes: Partial<Parameters<typeof updateExecutable>[0]> = {}) {
  return updateExecutable({
    from: place.release,
    executable: place.executable,
    key: parseSigningKey(place.key.publicKey),
    allowsDowngrade: false,
    isDryRun: false,
    ...changes,
  })
}

/** The files beside the executable; a candidate left behind would show. */
function assertHas(place: Place, content: string): void {
  assert.equal(readFileSync(place.executable, 'utf8'), content)
  assert.deepEqual(readdirSync(place.bin), ['dsc'])
}

async function serve(context: TestContext, folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const path = join(folder, request.url!.replace('/releases/', ''))
    if (existsSync(path)) response.end(readFileSync(path))
    else response.writeHead(404).end()
  })
  const port = await listenLocally(server, context)
  return `http://127.0.0.1:${port}/releases`
}

for (const { name, locate } of [
  { name: 'a folder', locate: (_: TestContext, place: Place) => place.release },
  { name: 'a file:// URL', locate: (_: TestContext, place: Place) => `file://${place.release}` },
  { name: 'a web server', locate: (context: TestContext, place: Place) => serve(context, place.release) },
]) {
  test(`an executable is replaced from ${name}, once, and keeps its mode`, async (context) => {
    const place = await makePlace(context)
    const from = await locate(context, place)
    const done = await update(place, { from })
    assert.deepEqual(done, { oldVersion: '0.1.0', newVersion: '0.2.0', state: 'replaced' })
    assertHas(place, NEW)
    assert.equal(statSync(place.executable).mode & 0o7777, 0o751)
    rmSync(join(place.release, OWN_NAME)) // is not read a second time
    assert.equal((await update(place, { from })).state, 'current')
  })
}

test('an executable that root replaces keeps its group', { skip: needsRoot }, async (context) => {
  const place = await makePlace(context)
  chownSync(place.executable, 0, 4242)
  chmodSync(place.executable, 0o2751)
  await update(place)
  const { uid, gid, mode } = statSync(place.executable)
  assert.deepEqual([uid, gid, mode & 0o7777], [0, 4242, 0o2751])
})

const REFUSALS: readonly {
  readonly name: string
  readonly code: FailureCode
  readonly message: RegExp
  readonly break: (place: Place) => unknown
}[] = [
  {
    name: 'the sums are changed after their signature',
    code: 'SIGNATURE_INVALID',
    message: /found one of other content/,
    break: ({ release }) => {
      const sums = join(release, 'SHA256SUMS')
      writeFileSync(
        sums,
        readFileSync(sums, 'utf8').replace(/^./, (digit) => (digit === '0' ? '1' : '0')),
      )
    },
  },
  {
    name: 'another key has signed',
    code: 'SIGNATURE_INVALID',
    message: /expected a signature by the key [0-9A-F]{16}, found one by [0-9A-F]{16}/,
    break: ({ folder, release }) =>
      makeRelease(release, { key: makeKeyPair(join(folder, 'other')), executable: NEW }),
  },
  {
    name: 'nobody has signed',
    code: 'SOURCE_NOT_FOUND',
    message: /there is no .*SHA256SUMS\.minisig/,
    break: ({ release }) => rmSync(join(release, 'SHA256SUMS.minisig')),
  },
  {
    name: 'the file is cut off',
    code: 'CHECKSUM_MISMATCH',
    message: /found 9 bytes/,
    break: ({ release }) => truncateSync(join(release, OWN_NAME), 9),
  },
  {
    name: 'the file is missing',
    code: 'SOURCE_NOT_FOUND',
    message: /there is no /,
    break: ({ release }) => rmSync(join(release, OWN_NAME)),
  },
  {
    name: 'the sums have no entry for this machine',
    code: 'SOURCE_NOT_FOUND',
    message: /SHA256SUMS lists no dsc-/,
    break: ({ release, key }) => {
      rmSync(join(release, OWN_NAME))
      return makeRelease(release, { key, executable: NEW, name: 'dsc-plan9-mips' })
    },
  },
  {
    name: 'it is older',
    code: 'UPDATE_REFUSED',
    message: /dsc 0\.0\.9, older than this 0\.1\.0/,
    break: ({ release, key }) => makeRelease(release, { key, executable: pretendDsc('0.0.9') }),
  },
  {
    name: 'it does not start here',
    code: 'UPDATE_REFUSED',
    message: /does not start here/,
    break: ({ release, key }) => makeRelease(release, { key, executable: pretendDsc('0.2.0', 'exit 1') }),
  },
  {
    name: 'it says no version',
    code: 'UPDATE_REFUSED',
    message: /expected a version, found "hello/,
    break: ({ release, key }) => makeRelease(release, { key, executable: pretendDsc('hello') }),
  },
]
for (const { name, code, message, break: damage } of REFUSALS) {
  test(`an update is refused if ${name}, and the old executable stays`, async (context) => {
    const place = await makePlace(context)
    await damage(place)
    for (const from of [place.release, await serve(context, place.release)]) {
      await assert.rejects(update(place, { from }), { code, message })
      assertHas(place, OLD)
    }
  })
}

test('an older version needs to be asked for; a dry run replaces nothing', async (context) => {
  const older = pretendDsc('0.0.9')
  const place = await makePlace(context, older)
  assert.equal((await update(place, { allowsDowngrade: true, isDryRun: true })).state, 'would replace')
  assertHas(place, OLD)
  assert.equal((await update(place, { allowsDowngrade: true })).newVersion, '0.0.9')
  assertHas(place, older)
})

test('an executable that does not start is replaced, too', async (context) => {
  const place = await makePlace(context)
  writeFileSync(place.executable, 'broken')
  assert.deepEqual(await update(place), { oldVersion: undefined, newVersion: '0.2.0', state: 'replaced' })
})

test('what a package installed is left to it', async (context) => {
  const place = await makePlace(context)
  mkdirSync(join(place.folder, 'lib/dsc'), { recursive: true })
  await assert.rejects(requireStandalone(place.executable), {
    code: 'UPDATE_REFUSED',
    hint: 'build the image with the new executable',
  })
})

test('only the owner updates an executable', { skip: needsRoot }, async (context) => {
  const place = await makePlace(context)
  chownSync(place.executable, 4242, 4242)
  await assert.rejects(update(place), { code: 'UPDATE_REFUSED', hint: "sudo -u '#4242' dsc self update …" })
  assertHas(place, OLD)
})

test('a place that cannot be written is named', async (context) => {
  const place = await makePlace(context)
  const isRoot = process.geteuid?.() === 0
  if (isRoot) for (const path of [place.bin, place.executable]) chownSync(path, 4242, 4242)
  chmodSync(place.folder, 0o755)
  chmodSync(place.bin, 0o555)
  if (isRoot) process.seteuid?.(4242)
  try {
    await assert.rejects(
      replaceExecutable(place.executable, Buffer.from(NEW), async () => true),
      { code: 'UPDATE_REFUSED', message: /EACCES/ },
    )
  } finally {
    if (isRoot) process.seteuid?.(0)
    chmodSync(place.bin, 0o755)
  }
  assertHas(place, OLD)
})

test('an update that is killed leaves the old executable, and the next one cleans up', async (context) => {
  const place = await makePlace(context)
  const [tried, go] = [join(place.folder, 'tried'), join(place.folder, 'go')]
  const slow = pretendDsc('0.2.0', `touch '${tried}'; while [ ! -e '${go}' ]; do sleep 0.02; done`)
  await makeRelease(place.release, { key: place.key, executable: slow })
  const world = await makeWorld(context, {})
  const link = join(place.folder, 'link')
  symlinkSync(place.executable, link)
  const words = ['self', 'update', place.release, '--key', place.key.publicKey, '--executable', link]
  const running = world.start(words)
  await waitFor('the new executable to be tried', () => existsSync(tried))
  running.process.kill('SIGKILL')
  await running.finished
  writeFileSync(go, '')
  assert.equal(readFileSync(place.executable, 'utf8'), OLD)
  assert.equal(readdirSync(place.bin).length, 2)

  const { stdout } = await succeeds(world.dsc(...words))
  assert.equal(stdout, `replaced ${place.executable}: 0.1.0 → 0.2.0\n`)
  assertHas(place, slow)
})

test('a dsc that runs from its checkout says how to update that', {
  skip: process.env.DSC_BIN && 'it is an executable',
}, async (context) => {
  const { release, key, executable } = await makePlace(context)
  const world = await makeWorld(context, {})
  const { code, stderr } = await world.dsc('self', 'update', release, '--key', key.publicKey)
  assert.equal(code, 10)
  assert.match(stderr, /bin\/dsc\.js is part of a checkout\n.*git pull && npm ci/)
  const unsigned = await world.dsc('self', 'update', release, '--executable', executable)
  assert.match(unsigned.stderr, /expected --key, found none/)
})
