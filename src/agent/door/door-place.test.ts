import assert from 'node:assert/strict'
import { chmodSync, mkdirSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { deriveDatasetName } from '../../model/dataset.js'
import type { HandedAccess } from '../../sources/own-access.js'
import { prepareAs, silently } from '../../testing/door-service.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { createDoorApi } from './door-api.js'
import { DoorClient } from './door-client.js'
import { findReplaceable } from './door-place.js'

const [ADA, SERVICE, EVE] = [64_001, 64_002, 64_003]
const folder = (path: string, uid: number, mode = 0o755) => ({ path, uid, gid: uid, mode })
const ROOT = folder('/', 0)
const TMP = folder('/tmp', 0, 0o1777)

for (const { name, folders, why } of [
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
  },
])
  test(`a door ${name} is ${why ? 'anybody’s' : 'its owner’s'}`, () => {
    assert.equal(findReplaceable(folders, ADA), why)
  })

test('a service whose folder others could have put there gets no credentials', async (context) => {
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
  chmodSync(around, 0o777)
  await assert.rejects(prepare(), {
    code: 'SERVICE_UNREACHABLE',
    message: /trusted: everybody may write to .*shared/,
  })
  assert.equal(bodies.length, 1)
  chmodSync(around, 0o755)
  assert.equal(await prepare(), 'mine')
})
