import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { DSC, killWithTest, succeeds } from '../testing/dsc-processes.js'
import { type NodeService, SERVICE, startNodeService } from '../testing/node-service.js'
import { ADA, BOB, findObstacle, type Owner } from '../testing/several-users.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { writeTree } from '../testing/world.js'

const NOT_PERMITTED = 7
const COPY_DAMAGED = 9

/** Bob is an admin, and no root; Ada is nobody in particular. */
describe('the upkeep of a cache that belongs to its service', { skip: findObstacle() }, () => {
  let service: NodeService
  let folders: string
  const closes: (() => unknown)[] = []
  before(async () => {
    service = await startNodeService(
      { after: (close) => void closes.push(close as () => unknown) },
      {
        agent: { admins: [`user:uid-${BOB.uid}`] },
        datasets: { secret: { source: 'file:///srv/nothing/', readers: [`user:uid-${BOB.uid}`] } },
      },
    )
    folders = join(service.world.directory, 'folders')
    for (const name of ['birds', 'closed']) {
      await writeTree(join(folders, name), { 'a.txt': 'wren', 'b.txt': 'finch' })
      chownSync(join(folders, name), SERVICE.uid, SERVICE.gid)
    }
    chownSync(join(folders, 'closed'), BOB.uid, BOB.gid)
    chmodSync(join(folders, 'closed'), 0o700)
    await succeeds(service.as(ADA, 'prepare', 'flowers', '--task', 'ada'))
  })
  after(async () => {
    for (const close of closes) await close()
  })

  const refuses = async (owner: Owner, words: readonly string[], sentence: RegExp) => {
    const { code, stdout, stderr } = await service.as(owner, ...words)
    assert.deepEqual([code, stdout], [NOT_PERMITTED, ''], stderr)
    assert.match(stderr, sentence)
  }
  const pathOf = async (dataset: string): Promise<string> => {
    const { copies } = JSON.parse((await service.as(BOB, 'status', '--json')).stdout)
    return copies.find((copy: { readonly dataset: string }) => copy.dataset === dataset).path
  }
  /** Has dsc never written to: the cache of one's own that a command without a door would have used. */
  const hasOwnCache = () => existsSync(join(service.world.directory, 'nobodys-home'))

  test('verify reads the copies of the node for everybody, and an admin alone repairs', async () => {
    const verified = await succeeds(service.as(ADA, 'verify'))
    assert.match(verified.stdout, /^flowers: 2 files, \S+ \S+ read, all as downloaded\n$/)
    const file = join(await pathOf('flowers'), 'a.txt')
    chmodSync(file, 0o644)
    writeFileSync(file, 'ROSE')
    const damaged = await service.as(ADA, 'verify', 'flowers', '--json')
    assert.equal(damaged.code, COPY_DAMAGED)
    const { copies } = JSON.parse(damaged.stdout)
    assert.deepEqual(
      copies[0].damages.map(({ path, problem }: { path: string; problem: string }) => [path, problem]),
      [['a.txt', 'content']],
    )
    await refuses(ADA, ['verify', 'flowers', '--repair'], /only an admin may repair copies/)
    const repaired = await service.as(BOB, 'verify', 'flowers', '--repair')
    assert.match(repaired.stdout, /1 damaged, repaired/, repaired.stderr)
    assert.equal(repaired.code, 0)
    assert.equal((await service.as(ADA, 'verify', 'flowers')).code, 0)
    assert.equal(hasOwnCache(), false)
  })

  test('receipt --verify looks at the copies and the sources of the node, for who may read them', async () => {
    const receipt = join(folders, 'receipt.json')
    writeFileSync(receipt, (await service.as(ADA, 'receipt', 'ada')).stdout)
    const whole = await service.as(ADA, 'receipt', receipt, '--verify')
    assert.match(whole.stdout, /^flowers \w+: available\n/, whole.stderr)
    assert.match(whole.stdout, /the source has the same files by size and modification time/)
    assert.match(whole.stdout, /the copy here is whole: 2 files/)
    assert.equal(whole.code, 0)
    // Its file can name any source: none is listed that its asker may not stage.
    const document = JSON.parse(readFileSync(receipt, 'utf8'))
    const [used] = document.distribution
    used['dsc:definition'].source = pathToFileURL(`${folders}/birds/`).href
    writeFileSync(receipt, JSON.stringify(document))
    const elsewhere = await service.as(ADA, 'receipt', receipt, '--verify')
    assert.match(
      elsewhere.stdout,
      /the source cannot be read: an admin may stage this source for you/,
      elsewhere.stderr,
    )
    used['dsc:definition'].source = 'flowers'
    writeFileSync(receipt, JSON.stringify(document))
    const unusable = await service.as(ADA, 'receipt', receipt, '--verify')
    assert.match(
      unusable.stdout,
      /^flowers \w+: available\n {2}the source cannot be read: .*it has no scheme\n/,
    )
    assert.equal(unusable.code, 0, unusable.stderr)
    used.name = 'secret'
    writeFileSync(receipt, JSON.stringify(document))
    await refuses(ADA, ['receipt', receipt, '--verify'], /only user:uid-64002 may read this dataset/)
    assert.equal(hasOwnCache(), false)
  })

  test('verify says nothing of a dataset to a user who may not read it', async () => {
    await refuses(ADA, ['verify', 'secret'], /only user:uid-64002 may read this dataset/)
    const unknown = await service.as(BOB, 'verify', 'secret')
    assert.match(unknown.stderr, /no copy of secret|secret has no copy|secret/)
    assert.notEqual(unknown.code, NOT_PERMITTED)
  })

  test('adopt takes a folder that the service can read, for an admin', async () => {
    const folder = join(folders, 'birds')
    await refuses(ADA, ['adopt', folder], /only an admin may adopt folders/)
    assert.deepEqual(readdirSync(folder), ['a.txt', 'b.txt'])
    const closed = await service.as(BOB, 'adopt', join(folders, 'closed'))
    assert.notEqual(closed.code, 0)
    assert.match(closed.stderr, /closed/)
    const adopted = await service.as(BOB, 'adopt', folder)
    assert.match(adopted.stdout, /^adopted birds +2 files .*\/birds +locked\n$/, adopted.stderr)
    const again = await service.as(BOB, 'adopt', folder)
    assert.match(again.stderr, /birds is in the record already/)
    assert.equal(await pathOf('birds'), folder)
  })

  test('cleanup removes leftovers for an admin, who can take its evictions back', async () => {
    const left = join(service.world.root, 'staging', 'left')
    mkdirSync(left, { recursive: true })
    chownSync(left, SERVICE.uid, SERVICE.gid)
    for (const words of [['cleanup'], ['cleanup', '--dry-run'], ['cleanup', '--resume']])
      await refuses(ADA, words, /only an admin may clean up the cache/)
    const planned = await service.as(BOB, 'cleanup', '--dry-run', '--abandoned-after', '0s')
    assert.match(planned.stdout, /^would remove .*\/staging\/left/m, planned.stderr)
    assert.ok(existsSync(left))
    const done = await succeeds(service.as(BOB, 'cleanup', '--abandoned-after', '0s', '--json'))
    const { actions } = JSON.parse(done.stdout)
    assert.deepEqual(
      actions.map(({ kind, path }: { kind: string; path: string }) => [kind, path]),
      [['remove-directory', left]],
    )
    assert.ok(!existsSync(left))
    assert.equal((await service.as(ADA, 'cleanup', '--print-cron')).code, 0) // prints, and asks nobody
  })

  test('bench and repair say where they belong', async () => {
    await refuses(BOB, ['bench'], /dsc bench writes to the cache, which belongs to the service of this node/)
    await refuses(ADA, ['repair', 'secret'], /only user:uid-64002 may read this dataset/)
    const none = await service.as(ADA, 'repair', 'flowers', '--dry-run')
    assert.notEqual(none.code, 0)
    assert.match(none.stderr, /flowers/)
  })
})

test('a socket that another user has put where everybody may write is asked nothing', {
  skip: findObstacle(),
}, async (context) => {
  const around = await temporaryDirectory(context)
  chmodSync(around, 0o1777)
  const folder = join(around, 'door')
  mkdirSync(folder)
  const path = join(folder, 'dsc.sock')
  let asked = 0
  const server = createServer((_, response) => {
    asked++
    response.writeHead(403).end(JSON.stringify({ error: { code: 'NOT_PERMITTED', message: 'no' } }))
  })
  await new Promise<void>((resolve) => server.listen({ path, writableAll: true }, resolve))
  context.after(() => server.close())
  for (const place of [folder, path]) chownSync(place, BOB.uid, BOB.gid)
  const start = killWithTest(context)
  const ask = (owner: Owner, ...words: readonly string[]) =>
    start([...DSC, ...words], { owner, cwd: '/', environment: { DSC_DOOR: path, HOME: folder } }).finished
  for (const owner of [ADA, { uid: 0, gid: 0 }])
    for (const words of [['status'], ['prepare', 'flowers']]) {
      const { code, stderr } = await ask(owner, ...words)
      assert.match(stderr, /the door of the service cannot be trusted: everybody may write to /)
      assert.notEqual(code, 0)
    }
  assert.equal(asked, 0)
  assert.equal((await ask(BOB, 'status')).code, NOT_PERMITTED)
  assert.equal(asked, 1)
})
