import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Config } from '../../config/config.js'
import { loadConfig } from '../../config/load-config.js'
import { DscError } from '../../failure/dsc-error.js'
import { EXIT_CODES } from '../../failure/exit-codes.js'
import { FAILURES } from '../../failure/failure-table.js'
import type { Dataset } from '../../model/dataset.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { listenLocally } from '../../testing/listen-locally.js'
import { listExitCodes } from '../commands/doctor.js'
import { checkCacheRoot, checkFreeSpace, checkInodes } from './check-cache-root.js'
import { checkRecord } from './check-record.js'
import { checkClocks, checkSources, judgeSkew, type OpenSource } from './check-sources.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-doctor-'))
after(() => rmSync(root, { recursive: true }))
const signal = new AbortController().signal
const flowers: Dataset = { name: 'flowers', source: 's3://ml-data/flowers/', include: [], exclude: [] }

function configWith(cacheRoot: string): Promise<Config> {
  const environment = { DSC_CACHE_ROOT: cacheRoot }
  return loadConfig({ explicitPath: undefined, environment, workingDirectory: root, homeDirectory: root })
}

function sourceOf(keys: readonly string[]): OpenSource {
  return async () => ({
    async *list() {
      if (keys.length > 0)
        yield keys.map((key) => ({
          key,
          sizeBytes: 1,
          etag: null,
          versionId: null,
          checksum: null,
          modifiedAtMs: 0,
        }))
    },
    async close() {},
  })
}

test('a cache root that does not exist yet is checked where it will be made, and nothing stays behind', async () => {
  const checks = await checkCacheRoot(await configWith(join(root, 'a', 'b')))
  assert.deepEqual(
    checks.map(({ name }) => name),
    ['cache root', 'hard links', 'reflinks', 'cache file system', 'free space', 'inodes'],
  )
  assert.match(checks[0]!.detail, /will be made.*is writable/)
  assert.equal(checks[1]!.detail, 'yes')
  assert.deepEqual(readdirSync(root), [])
})

test('a cache root that cannot be written is a failure with a hint', async () => {
  // Root can write anywhere; only /proc refuses everybody.
  const [first] = await checkCacheRoot(await configWith('/proc/dsc'))
  assert.equal(first?.status, 'failed')
  assert.match(first?.hint ?? '', /cache\.root/)
})

for (const { name, freeBytes, minFreeBytes, status } of [
  { name: 'is fine with half of the disk free', freeBytes: 500, minFreeBytes: 0, status: 'ok' },
  { name: 'warns below five percent', freeBytes: 49, minFreeBytes: 0, status: 'warning' },
  { name: 'warns below minFree', freeBytes: 500, minFreeBytes: 501, status: 'warning' },
]) {
  test(`checkFreeSpace ${name}`, () => {
    const disk = { capacityBytes: 1000, freeBytes, inodesTotal: 0, inodesFree: 0 }
    assert.equal(checkFreeSpace(disk, minFreeBytes).status, status)
  })
}

for (const [inodesTotal, inodesFree, status] of [
  [0, 0, 'ok'],
  [1000, 500, 'ok'],
  [1000, 49, 'warning'],
] as const) {
  test(`checkInodes says ${status} for ${inodesFree} of ${inodesTotal}`, () => {
    const disk = { capacityBytes: 1000, freeBytes: 500, inodesTotal, inodesFree }
    assert.equal(checkInodes(disk).status, status)
  })
}

test('a SQLite record on a local disk passes, with WAL tried beside it', async () => {
  const folder = join(root, 'record')
  mkdirSync(folder)
  const path = join(folder, 'record.db')
  const checks = await checkRecord({ kind: 'sqlite', url: `sqlite://${path}`, path }, () =>
    openSqliteRecord(path),
  )
  assert.deepEqual(
    checks.map(({ name, status }) => `${name} ${status}`),
    ['record file system ok', 'record WAL ok', 'record ok', 'record integrity ok'],
  )
  assert.deepEqual(
    readdirSync(folder).filter((name) => name.startsWith('.dsc')),
    [],
  )
})

test('a SQLite record with a damaged page fails, although it opens', async () => {
  const path = join(root, 'damaged.db')
  const record = await openSqliteRecord(path)
  for (let i = 0; i < 2000; i++) await record.saveDataset({ ...flowers, name: `flowers-${i}` }, 0)
  await record.close()
  const pages = readFileSync(path)
  pages.fill(0xab, pages.length - 3 * 4096, pages.length - 2 * 4096)
  writeFileSync(path, pages)
  const fine = {
    location: 'sqlite:///record.db',
    listDatasets: async () => [flowers],
    findHindrance: async () => undefined,
  }
  const checks = await checkRecord({ kind: 'sqlite', url: `sqlite://${path}`, path }, async () => fine)
  const found = checks.find(({ name }) => name === 'record integrity')
  assert.equal(found?.status, 'failed')
  assert.match(found?.hint ?? '', /dsc cleanup/)
})

test('a SQLite record on a network file system fails, and is not opened', async () => {
  const path = join(root, 'record.db')
  const checks = await checkRecord(
    { kind: 'sqlite', url: `sqlite://${path}`, path },
    () => assert.fail('the record was opened'),
    async () => ({ name: 'nfs', isNetwork: true }),
  )
  assert.deepEqual(
    checks.map(({ name, status }) => `${name} ${status}`),
    ['record file system failed'],
  )
  assert.match(checks[0]!.hint ?? '', /PostgreSQL/)
})

test('a record that does not open fails with its own words and without its password', async () => {
  const checks = await checkRecord({ kind: 'postgres', url: 'postgres://u:hunter2@h/d' }, async () => {
    throw new DscError('RECORD_UNAVAILABLE', 'no answer', { hint: 'start it' })
  })
  assert.deepEqual(checks, [{ name: 'record', status: 'failed', detail: 'no answer', hint: 'start it' }])
  const fine = {
    location: 'sqlite:///record.db',
    listDatasets: async () => [flowers],
    findHindrance: async () => undefined,
  }
  const [shown] = await checkRecord({ kind: 'postgres', url: 'postgres://u:hunter2@h/d' }, async () => fine)
  assert.doesNotMatch(String(shown?.detail), /hunter2/)
})

test('each source is listed; an empty or refused one fails with its hint', async () => {
  assert.match(
    (await checkSources([flowers], sourceOf(['a.jpg']), signal))[0]!.detail,
    /for example "a\.jpg"/,
  )
  assert.equal((await checkSources([flowers], sourceOf([]), signal))[0]!.status, 'failed')
  const [denied] = await checkSources(
    [flowers],
    () => Promise.reject(new DscError('SOURCE_DENIED', 'no', { hint: 'log in' })),
    signal,
  )
  assert.deepEqual(denied, { name: 'dataset flowers', status: 'failed', detail: 'no', hint: 'log in' })
  assert.equal((await checkSources([], sourceOf([]), signal))[0]!.status, 'skipped')
})

for (const [aheadMs, status] of [
  [0, 'ok'],
  [-30_000, 'ok'],
  [60_000, 'warning'],
  [-60_000, 'warning'],
  [16 * 60_000, 'failed'],
] as const) {
  test(`judgeSkew says ${status} when this machine is ${aheadMs} ms ahead`, () => {
    assert.equal(judgeSkew('clock', aheadMs).status, status)
  })
}

test('the clock is compared with the Date header of each S3 server once', async () => {
  let requests = 0
  const server = createServer((_request, response) => {
    requests += 1
    response.setHeader('date', new Date(1_700_000_000_000).toUTCString()).writeHead(403).end()
  })
  const port = await listenLocally(server)
  const endpoint = `http://127.0.0.1:${port}`
  const datasets = [
    { ...flowers, endpoint },
    { ...flowers, name: 'b', endpoint },
  ]
  try {
    const checks = await checkClocks(datasets, { nowMs: () => 1_700_000_000_000 + 3_600_000, signal })
    assert.equal(requests, 1)
    assert.equal(checks.length, 1)
    assert.match(checks[0]!.detail, /this machine is 1h ahead/)
  } finally {
    server.close()
  }
})

test('the published exit codes list every failure once, with success and internal errors', () => {
  const codes = listExitCodes()
  assert.equal(codes.length, Object.keys(FAILURES).length + 2)
  assert.deepEqual(
    [...new Set(codes.map(({ exitCode }) => exitCode))],
    Object.values(EXIT_CODES).map(({ exitCode }) => exitCode),
  )
})
