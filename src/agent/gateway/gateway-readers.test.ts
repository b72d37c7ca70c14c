import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { userInfo } from 'node:os'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { exampleDataset } from '../../testing/example-copies.js'
import { DATA, openGatewayNode, originOf } from '../../testing/gateway-node.js'
import { needsRoot } from '../../testing/needs.js'
import { type GatewayUser, isReadable, judgeReaders } from './gateway-readers.js'

const OPEN = exampleDataset('flowers')
const RULES = { ownerUid: 64_010, admins: ['user:ada'] }
const { uid: ownUid, username } = userInfo()
const GROUP = 'root' // the one group that every machine has

for (const { who, user, readers, may } of [
  { who: 'the named user', user: { kind: 'uid', uid: 64_003 }, readers: ['user:uid-64003'], may: true },
  { who: 'another user', user: { kind: 'uid', uid: 64_001 }, readers: ['user:uid-64003'], may: false },
  { who: 'the service itself', user: { kind: 'uid', uid: 64_010 }, readers: ['user:eve'], may: true },
  { who: 'root', user: { kind: 'uid', uid: 0 }, readers: ['user:eve'], may: true },
  { who: 'a key of the name', user: { kind: 'key', name: 'eve' }, readers: ['user:eve'], may: true },
  { who: 'a key of another name', user: { kind: 'key', name: 'bob' }, readers: ['user:eve'], may: false },
  { who: 'a key called as an admin', user: { kind: 'key', name: 'ada' }, readers: ['user:eve'], may: false },
  { who: 'a key called root', user: { kind: 'key', name: 'root' }, readers: ['user:eve'], may: false },
  { who: 'a key of a member', user: { kind: 'key', name: 'root' }, readers: [`group:${GROUP}`], may: true },
  { who: 'a member', user: { kind: 'uid', uid: ownUid }, readers: [`user:${username}`], may: true },
  { who: 'a holder of the token', user: { kind: 'all' }, readers: ['user:eve'], may: true },
  { who: 'nobody that is known', user: undefined, readers: ['user:eve'], may: false },
] as const satisfies readonly { user: GatewayUser | undefined; [field: string]: unknown }[])
  test(`${who} ${may ? 'may' : 'may not'} read what is for ${readers.join()} through the gateway`, async () => {
    const faces = { ...exampleDataset('faces'), readers }
    const requireReader = await judgeReaders([OPEN, faces], RULES, async () => user)
    assert.deepEqual([isReadable(OPEN, requireReader), isReadable(faces, requireReader)], [true, may])
  })

test('nobody is asked who they are where everybody may read all', async () => {
  const requireReader = await judgeReaders([OPEN], RULES, () => assert.fail('asked'))
  requireReader(OPEN)
})

test('objects of it are for its readers alone, ready or not, listed or not', {
  skip: needsRoot,
}, async (t) => {
  const faces = { ...DATA, name: 'faces', source: 's3://bucket/faces/', readers: ['user:uid-64001'] }
  const node = await openGatewayNode(t, [originOf({ a: 'rose' }), originOf({ a: 'ada' }, faces)])
  const { port } = await node.open([DATA, faces])
  const ask = async (uid: number, path: string) => {
    // It changes its user after starting: others may lack access to this checkout.
    const script = `process.setgroups([]); process.setgid(${uid}); process.setuid(${uid})
      fetch(process.argv[1]).then(async (r) => console.log(r.status, await r.text()))`
    const words = ['-e', script, `http://127.0.0.1:${port}${path}`]
    return (await promisify(execFile)(process.execPath, words)).stdout.trim()
  }
  assert.match(await ask(64_003, '/bucket/faces/a'), /^403 .*only user:uid-64001 may read/s)
  for (let turn = 0; turn < 2; turn++) assert.equal(await ask(64_001, '/bucket/faces/a'), '200 ada')
  assert.match(await ask(64_003, '/bucket/faces/a'), /^403 /)
  assert.equal(await ask(64_003, '/bucket/data/a'), '200 rose')
  const listed = await ask(64_003, '/bucket?list-type=2')
  assert.deepEqual([listed.includes('data/a'), listed.includes('faces')], [true, false])
  assert.ok((await ask(64_001, '/bucket?list-type=2')).includes('faces/a'))
})
