import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ACCOUNT_ANSWERS } from '../cli/answers/answer-schemas.js'
import { makeWorld } from '../testing/world.js'

test('a report says what was saved, what was refused, what was fetched again and what to change', async (context) => {
  const world = await makeWorld(context, {
    cache: { maxDatasets: 1 },
    datasets: Object.fromEntries(['a', 'b'].map((name) => [name, { source: `./data/${name}` }])),
  })
  for (const name of ['a', 'b']) {
    await mkdir(join(world.directory, 'data', name), { recursive: true })
    await writeFile(join(world.directory, 'data', name, 'x'), name.repeat(1000))
  }
  const empty = await world.dsc('report')
  assert.match(empty.stdout, /^Last 7d: no dataset was used\./)
  const longest = await world.dsc('report', '--since', '104000000d', '--json')
  assert.equal(JSON.parse(longest.stdout).since, '1970-01-01T00:00:00.000Z', longest.stderr)
  for (const [name, code] of [
    ['a', 0],
    ['a', 0], // a warm one
    ['b', 0], // evicts a
    ['a', 0], // evicts b, fetches a again
    ['b', 5], // a is in use
  ] as const) {
    if (code === 0) await world.dsc('release', '--all', '--task', 't')
    const prepared = await world.dsc('prepare', name, '--task', 't')
    assert.equal(prepared.code, code, prepared.stderr)
  }
  const { stdout } = await world.dsc('report', '--egress-price', '1000000', '--json')
  const report = ACCOUNT_ANSWERS.report.parse(JSON.parse(stdout))
  assert.deepEqual(
    [report.uses, report.hits, report.hitRate, report.readBytes, report.storeBytes, report.savedBytes],
    [4, 1, 0.25, 4000, 3000, 1000],
  )
  assert.equal(report.savedMoney, 1) // 1,000 bytes at a million for each GB
  assert.deepEqual(
    report.datasets.map(({ dataset, uses, evictions, stagedAgain }) => [
      dataset,
      uses,
      evictions,
      stagedAgain,
    ]),
    [
      ['a', 3, 1, 1],
      ['b', 1, 1, 0],
    ],
  )
  assert.deepEqual(
    report.refusals.map(({ dataset, limits, count }) => [dataset, limits, count]),
    [['b', ['maxDatasets'], 1]],
  )
  assert.equal(report.waits.length, 3)
  assert.deepEqual(report.unused, [])
  assert.deepEqual(
    report.advice.map(({ change }) => change),
    ['raise cache.maxDatasets', 'dsc lock a, or cache.shares for those who use it'],
  )
  const text = await world.dsc('report', '--egress-price', '0.09')
  assert.match(text.stdout, /used +4 times, 25% found the dataset ready/)
  assert.match(text.stdout, /saved +1000 B that the store did not send, 0\.00 at 0\.09 for each GB/)
  assert.match(text.stdout, /REFUSED +DATASET/)
  const wrong = await world.dsc('report', '--egress-price', 'cheap')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /expected a price such as 0\.09, found "cheap"/)
})
