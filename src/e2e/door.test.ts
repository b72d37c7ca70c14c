import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { succeeds } from '../testing/dsc-processes.js'
import { findFreePort } from '../testing/free-port.js'
import { type NodeService, SERVICE, startNodeService } from '../testing/node-service.js'
import { ADA, BOB, findObstacle, type Owner } from '../testing/several-users.js'
import { waitFor } from '../testing/world.js'

const ROOT: Owner = { uid: 0, gid: 0 }
const NOT_PERMITTED = 7

describe('a service whose cache is asked at its door', { skip: findObstacle() }, () => {
  let service: NodeService
  const closes: (() => unknown)[] = []
  before(async () => {
    service = await startNodeService({ after: (close) => void closes.push(close as () => unknown) })
  })
  after(async () => {
    for (const close of closes) await close()
  })

  test('stages for a user who has no configuration, no key and no rights on the disk', async () => {
    const prepared = await succeeds(service.as(ADA, 'prepare', 'flowers', '--task', 'ada'))
    assert.match(prepared.stderr, /flowers: 2 files staged; verified 2 by/)
    const path = prepared.stdout.trim()
    assert.ok(path.startsWith(service.world.root))
    assert.equal(await readFile(join(path, 'a.txt'), 'utf8'), 'rose')
    const again = await service.as(BOB, 'prepare', 'flowers', '--task', 'bob', '--json')
    const { lease, ...answer } = JSON.parse(again.stdout)
    assert.deepEqual([answer.path, answer.files, lease.task], [path, 2, 'bob'])
    assert.deepEqual(lease.holder, { kind: 'ttl', userId: BOB.uid })
  })

  test('shows everybody what its owner sees without it', async () => {
    const owner = (...words: readonly string[]) =>
      service.world.start([...words, '--config', join(service.world.directory, 'dsc.yaml')], {
        owner: SERVICE,
      }).finished
    for (const [words, fields] of [
      [
        ['status', '--json'],
        ['copies', 'leases', 'transfers', 'events'],
      ],
      [['leases', '--json'], ['leases']],
      [['history', '--json'], ['events']],
      [['why', 'flowers', '--json'], ['copies']],
      [['hint', 'flowers', '--json'], ['nodes']],
    ] as const) {
      const [ada, own] = await Promise.all([service.as(ADA, ...words), owner(...words)])
      assert.equal(ada.code, 0, ada.stderr)
      const pick = (text: string) => fields.map((field) => JSON.parse(text)[field])
      assert.deepEqual(pick(ada.stdout), pick(own.stdout))
      assert.ok(ada.stdout.includes('flowers'))
    }
    const receipt = await service.as(BOB, 'receipt', 'ada', '--json')
    assert.equal(JSON.parse(receipt.stdout).receipt['dsc:task'], 'ada', receipt.stderr)
  })

  test("has doctor check what its users need, and not what is the service's to reach", async () => {
    const { stdout } = await succeeds(service.as(ADA, 'doctor', '--json'))
    const { checks } = JSON.parse(stdout) as { checks: readonly { name: string; detail: string }[] }
    assert.deepEqual(
      checks.map(({ name }) => name),
      ['node', 'configuration', 'door', 'cache root', 'free space', 'inodes', 'datasets'],
    )
    assert.match(checks[2]!.detail, new RegExp(service.door))
  })

  test('lets nobody end the lease of another user, but root', async () => {
    const listed = await service.as(BOB, 'leases')
    assert.match(listed.stdout, /^ada +.* ttl by (?!root)\S+ *$/m)
    const evicted = await service.as(ROOT, 'evict', 'flowers', '--yes')
    assert.match(evicted.stderr, new RegExp(`leased by ada \\(until \\S+, uid ${ADA.uid}\\)`))
    const held = await service.as(BOB, 'release', 'flowers', '--task', 'ada')
    assert.equal(held.stdout, 'task ada has no lease on flowers\n')
    const { leases } = JSON.parse((await service.as(BOB, 'leases', '--json')).stdout)
    const { leaseId } = leases.find(({ task }: { task: string }) => task === 'ada')
    const refused = await service.as(BOB, 'release', '--lease', leaseId)
    assert.deepEqual([refused.code, /of another user/.test(refused.stderr)], [NOT_PERMITTED, true])
    const own = await service.as(ADA, 'release', 'flowers', '--task', 'ada')
    assert.equal(own.stdout, 'released 1 lease of task ada\n')
    const byRoot = await service.as(ROOT, 'release', 'flowers', '--task', 'bob')
    assert.equal(byRoot.stdout, 'released 1 lease of task bob\n')
    assert.match((await service.as(ROOT, 'history')).stdout, /released +flowers +.* bob +root released it/)
  })

  for (const words of [
    ['lock', 'flowers'],
    ['dataset', 'add', 'mine', 'https://example.org/x'],
    ['dataset', 'rm', 'mine'],
    ['evict', 'flowers', '--yes'],
  ])
    test(`lets root ${words.join(' ')}, and no other user`, async () => {
      const refused = await service.as(ADA, ...words)
      assert.equal(refused.code, NOT_PERMITTED, refused.stderr)
      assert.match(refused.stderr, /only an admin may/)
      await succeeds(service.as(ROOT, ...words))
      if (words.includes('lock')) await service.as(ROOT, 'unlock', 'flowers')
    })

  test('gives root in a container no rights of an admin, at the socket of jobs', async () => {
    const inJob = (script: string) =>
      service.startShellAs(ROOT, script, { DSC_DOOR: join(service.door, '../jobs/dsc.sock') }).finished
    const prepared = await inJob('dsc prepare flowers --task job && dsc release flowers --task job')
    assert.match(prepared.stdout, /released 1 lease of task job/, prepared.stderr)
    const refused = await inJob('dsc lock flowers')
    assert.deepEqual([refused.code, /only an admin/.test(refused.stderr)], [NOT_PERMITTED, true])
  })

  test('takes back for each user their own release, and for admins what anybody did', async () => {
    const undo = async (user: typeof ADA, ...words: readonly string[]) => {
      const { code, stdout, stderr } = await service.as(user, 'undo', ...words)
      return { code, said: stdout + stderr }
    }
    await service.as(ADA, 'prepare', 'flowers', '--task', 'mine')
    await service.as(ADA, 'release', 'flowers', '--task', 'mine')
    assert.match((await undo(BOB)).said, /nothing to undo/)
    const { deeds } = JSON.parse((await service.as(BOB, 'undo', '--list', '--json')).stdout)
    assert.deepEqual([deeds[0].kind, deeds[0].items[0].task], ['release', 'mine'])
    const refused = await undo(BOB, `${deeds[0].id}`)
    assert.deepEqual([refused.code, /another user released/.test(refused.said)], [NOT_PERMITTED, true])
    const own = await undo(ADA)
    assert.match(own.said, /^took back \S+'s release of flowers\n$/)
    await service.as(ADA, 'release', 'flowers', '--task', 'mine')
    await service.as(ROOT, 'evict', 'flowers', '--yes')
    const [evicted] = JSON.parse((await service.as(ADA, 'undo', '--list', '--json')).stdout).deeds
    assert.deepEqual([evicted.kind, (await undo(ADA, `${evicted.id}`)).code], ['evict', NOT_PERMITTED])
    assert.match((await undo(ROOT)).said, /^took back root's eviction of flowers, .+\n$/)
    const { copies } = JSON.parse((await service.as(ADA, 'status', '--json')).stdout)
    assert.deepEqual(
      copies.map(({ dataset }: { dataset: string }) => dataset),
      ['flowers'],
    )
  })

  test('reads no file for a user that they might not read themselves', async () => {
    const refused = await service.as(ADA, 'prepare', 'file:///etc/')
    assert.deepEqual([refused.code, refused.stdout], [NOT_PERMITTED, ''])
  })

  test('holds a lease for the process that asked, and ends it with that process', async () => {
    const shell = service.startShellAs(ADA, 'dsc prepare flowers >/dev/null; exec 1>&-; read line')
    const lease = await waitFor('the lease', async () => {
      const { leases } = JSON.parse((await service.as(ADA, 'leases', '--json')).stdout)
      return leases.find(({ purpose }: { purpose: string }) => purpose === 'use')
    })
    assert.deepEqual([lease.holder.kind, lease.holder.pid], ['process', shell.process.pid])
    shell.process.kill('SIGKILL')
    await shell.finished
    await succeeds(service.as(ROOT, 'evict', 'flowers', '--yes'))
  })

  test('is asked by a program that imports dsc, too, whose leases are its own', async () => {
    const program = `
      const { prepare, status } = await import('${new URL('../exports/index.js', import.meta.url)}')
      const prepared = await prepare('flowers')
      const { leases } = await status()
      await prepared.release()
      const after = (await status()).leases
      console.log(JSON.stringify({ path: prepared.path, lease: prepared.lease, leases, after, pid: process.pid }))`
    const ran = await succeeds(
      service.startShellAs(ADA, `exec '${process.execPath}' -e "${program}"`).finished,
    )
    const { path, lease, leases, after: left, pid } = JSON.parse(ran.stdout)
    assert.ok(path.startsWith(service.world.root))
    for (const { holder } of [lease, ...leases])
      assert.deepEqual([holder.kind, holder.pid, holder.userId], ['process', pid, ADA.uid])
    assert.deepEqual([leases.length, left], [1, []])
  })

  test('leases for a command that dsc run starts, until it ends', async () => {
    const ran = await service.as(ADA, 'run', 'flowers', '--', 'sh', '-c', 'cat $DSC_DATASET/a.txt; echo $$')
    assert.match(ran.stdout, /^rose\d+\n$/, ran.stderr)
    const { leases } = JSON.parse((await service.as(ADA, 'leases', '--json')).stdout)
    assert.deepEqual(leases, [])
    const { events } = JSON.parse((await service.as(ADA, 'history', '--json')).stdout)
    assert.equal(events[0].kind, 'released')
  })

  test('is waited for while it restarts', async () => {
    await service.stop()
    const waiting = service.startAs(ADA, 'prepare', 'flowers', '--task', 'later')
    await service.start()
    const prepared = await succeeds(waiting.finished)
    assert.match(prepared.stderr, /does not answer; waiting for it/)
  })
})

describe('a service with a dataset for some of its users', { skip: findObstacle() }, () => {
  let service: NodeService
  let port: number
  const closes: (() => unknown)[] = []
  before(async () => {
    port = await findFreePort()
    service = await startNodeService(
      { after: (close) => void closes.push(close as () => unknown) },
      { agent: { listen: `127.0.0.1:${port}` }, readers: [`user:uid-${ADA.uid}`] },
    )
  })
  after(async () => {
    for (const close of closes) await close()
  })
  const show = (owner: Owner, path: string) => service.startShellAs(owner, `cat ${path}`).finished

  test('stages it for them, and gives its files to nobody else', async () => {
    const refused = await service.as(BOB, 'prepare', 'flowers')
    assert.deepEqual([refused.code, refused.stdout], [NOT_PERMITTED, ''])
    assert.match(refused.stderr, new RegExp(`only user:uid-${ADA.uid} may read this dataset`))
    const prepared = await succeeds(service.as(ADA, 'prepare', 'flowers', '--task', 'ada'))
    const file = join(prepared.stdout.trim(), 'a.txt')
    assert.equal((await show(ADA, file)).stdout, 'rose')
    assert.match((await show(BOB, file)).stderr, /Permission denied/)
    assert.equal((await service.as(BOB, 'prepare', 'flowers')).code, NOT_PERMITTED)
    assert.match((await show(BOB, join(service.world.root, 'record.db'))).stderr, /Permission denied/)
  })

  test('shows the others its definition alone', async () => {
    for (const [command, field] of [
      ['status', 'copies'],
      ['leases', 'leases'],
      ['history', 'events'],
    ] as const) {
      const rows = async (owner: Owner) =>
        JSON.parse((await service.as(owner, command, '--json')).stdout)[field]
      assert.deepEqual([await rows(BOB), (await rows(ADA)).length > 0], [[], true], command)
    }
    const why = await service.as(BOB, 'why', 'flowers')
    assert.deepEqual([why.code, why.stdout], [NOT_PERMITTED, ''])
    const { datasets } = JSON.parse((await service.as(BOB, 'dataset', 'ls', '--json')).stdout)
    assert.deepEqual(datasets[0].readers, [`user:uid-${ADA.uid}`])
  })

  test('answers nobody who goes past the door, but root and its own user', async () => {
    const ask = (owner: Owner, path: string) =>
      service.startShellAs(
        owner,
        `exec '${process.execPath}' -e 'fetch("http://127.0.0.1:${port}${path}").then((r) => console.log(r.status))'`,
      ).finished
    for (const path of ['/v1/datasets/flowers/files/a.txt', '/v1/page/copies', '/metrics'])
      for (const [owner, status] of [
        [BOB, '403'],
        [ADA, '403'],
        [SERVICE, '200'],
        [ROOT, '200'],
      ] as const)
        assert.equal((await ask(owner, path)).stdout.trim(), status, path)
  })
})
