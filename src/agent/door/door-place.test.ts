import assert from 'node:assert/strict'
import { chmodSync, chownSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { deriveDatasetName } from '../../model/dataset.js'
import { findOtherWriters } from '../../platform/other-writers.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { openService, prepareAs, silently } from '../../testing/door-service.js'
import { needsRoot } from '../../testing/needs.js'
import { GROUP } from '../../testing/several-users.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { createDoorApi } from './door-api.js'
import { DoorClient } from './door-client.js'
import { type Folder, findReplaceable, listenAtDoor } from './door-socket.js'

const [ADA, SERVICE, EVE] = [64_001, 64_002, 64_003]
const folder = (path: string, uid: number, mode = 0o755) => ({ path, uid, gid: uid, mode })
const ROOT = folder('/', 0)
const TMP = folder('/tmp', 0, 0o1777)

for (const { name, folders, why, isOfTeam } of [
  { name: 'of the service in /run', folders: [folder('/run/dsc', SERVICE), folder('/run', 0), ROOT] },
  {
    name: 'in the home of its owner',
    folders: [folder('/home/e/door', EVE), folder('/home/e', EVE), folder('/home', 0), ROOT],
  },
  { name: 'of this user in /tmp', folders: [folder('/tmp/door', ADA), TMP, ROOT] },
  {
    name: 'of the service in a folder of root in /tmp',
    folders: [folder('/tmp/x/door', SERVICE), folder('/tmp/x', 0), TMP, ROOT],
  },
  {
    name: 'in a user namespace',
    folders: [folder('/run/dsc', 65_534), folder('/run', ADA), folder('/', 65_534)],
  },
  {
    name: 'that another user made in /tmp',
    folders: [folder('/tmp/door', EVE), TMP, ROOT],
    why: 'everybody may write to /tmp',
  },
  {
    name: 'that another user may move away',
    folders: [folder('/t/door', SERVICE), folder('/t', EVE), ROOT],
    why: `/t belongs to uid ${EVE}`,
  },
  {
    name: 'of this user that a group may move away',
    folders: [folder('/t/door', ADA), { ...folder('/t', 0, 0o775), gid: 100 }, ROOT],
    why: 'the group 100 may write to /t',
    isOfTeam: true,
  },
])
  test(`a door ${name} is ${why ? 'anybody’s' : 'its owner’s'}`, () => {
    const judge = (findWriters: (folder: Folder) => string | undefined) =>
      findReplaceable(folders, { uid: ADA, findWriters })
    assert.equal(
      judge((one) => findOtherWriters(one, one)),
      why,
    )
    assert.equal(
      judge(({ mode }) => (mode & 0o002 ? 'everybody' : undefined)),
      isOfTeam ? undefined : why,
    )
  })

test('a service whose folder everybody could have put there gets nothing, and one of a group no credentials', {
  skip: needsRoot,
}, async (context) => {
  const around = join(await temporaryDirectory(context), 'shared')
  const path = join(around, 'run', 'dsc.sock')
  mkdirSync(join(path, '..'), { recursive: true })
  const bodies: string[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body)
      const isHanded = body.includes('CANARY')
      const error = { code: 'NOT_PERMITTED', message: 'an admin may stage this source for you' }
      response.end(`${JSON.stringify(isHanded ? { result: 'mine' } : { error })}\n`)
    })
  })
  await new Promise<void>((resolve) => server.listen(path, resolve))
  context.after(() => server.close())
  const own: HandedAccess = {
    ...{ scheme: 's3', isPathStyle: true, keys: { accessKeyId: 'AKIA', secretAccessKey: 'CANARY' } },
  }
  const client = new DoorClient(path, { onAway: () => {}, patienceMs: 0 })
  const api = createDoorApi(client, { uid: ADA, findOwnAccess: async () => own })
  const source = 's3://bucket/mine/'
  const dataset = { ...{ name: deriveDatasetName(source), source }, include: [], exclude: [] }
  const prepare = () => api.prepare({ ...prepareAs('job'), dataset }, silently)
  chownSync(around, 0, GROUP)
  for (const { mode, message, requests } of [
    { mode: 0o777, message: /trusted: everybody may write to .*shared/, requests: 0 },
    { mode: 0o775, message: /trusted: the group 64000 may write to .*shared/, requests: 1 },
  ]) {
    chmodSync(around, mode)
    await assert.rejects(prepare(), { code: 'SERVICE_UNREACHABLE', message })
    assert.equal(bodies.length, requests)
  }
  chmodSync(around, 0o755)
  assert.equal(await prepare(), 'mine')
})

test('a door that anybody could have made is not knocked at', async (context) => {
  const { client, path } = await openService(context)
  chmodSync(join(path, '..'), 0o777)
  await assert.rejects(client.greet(), {
    code: 'SERVICE_UNREACHABLE',
    message: /others than its owner may write/,
  })
})

test('a second service finds the door taken, and one after a crash replaces the socket', async (context) => {
  const { path } = await openService(context)
  await assert.rejects(listenAtDoor(createServer(), path), { code: 'NODE_TAKEN' })
  const folder = join(await temporaryDirectory(context), 'run')
  mkdirSync(folder)
  const left = join(folder, 'dsc.sock')
  writeFileSync(left, '')
  await assert.rejects(listenAtDoor(createServer(), left), {
    code: 'CONFIG_INVALID',
    message: /is no socket/,
  })
  assert.equal(statSync(path).mode & 0o777, 0o666)
})
