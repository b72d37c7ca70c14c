import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { AGENT_METRICS } from '../agent/metrics/metrics.js'
import { FEED_METRICS } from '../feed/engine/feed-metrics.js'
import { killWithTest } from '../testing/dsc-processes.js'
import { findFreePort } from '../testing/free-port.js'
import { needs } from '../testing/needs.js'
import { makeWorld, type World, waitFor } from '../testing/world.js'

const FOLDER = fileURLToPath(new URL('../../scripts/prometheus', import.meta.url))

/** Every expression that a panel of the dashboard asks for. */
function listExpressions(): readonly string[] {
  const board = JSON.parse(readFileSync(join(FOLDER, 'dashboard.json'), 'utf8')) as {
    readonly panels: readonly { readonly targets: readonly { readonly expr: string }[] }[]
  }
  return board.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr))
}

test('dashboard and alerts ask for metrics that there are', () => {
  const known = new Set([
    ...Object.keys(AGENT_METRICS),
    ...Object.keys(FEED_METRICS).map((name) => `dsc_feed_${name}`),
  ])
  const asked = [...listExpressions(), readFileSync(join(FOLDER, 'alerts.yml'), 'utf8')]
    .flatMap((text) => text.match(/\bdsc_[a-z_]+/g) ?? [])
    .map((name) => name.replace(/(?<=_seconds)_(bucket|sum|count)$/, ''))
  assert.ok(asked.length > 20)
  assert.deepEqual(
    asked.filter((name) => !known.has(name)),
    [],
  )
})

test('promtool finds nothing wrong with the alerts, and each fires when it should', {
  skip: needs('promtool', 'prometheus'),
}, () => {
  for (const words of [
    ['check', 'rules', 'alerts.yml'],
    ['check', 'config', 'prometheus.yml'],
    ['test', 'rules', 'alerts.test.yml'],
  ]) {
    const { status, stdout, stderr } = spawnSync('promtool', words, { cwd: FOLDER, encoding: 'utf8' })
    assert.equal(status, 0, `${words.join(' ')}: ${stdout}${stderr}`)
  }
})

/** A node with an agent that has seen a staging, a hit and a refusal. Returns the agent's address. */
async function runAgent(context: TestContext): Promise<{ readonly world: World; readonly address: string }> {
  const address = `127.0.0.1:${await findFreePort()}`
  const world = await makeWorld(context, {
    cache: { maxDatasets: 1 },
    agent: { listen: address },
    datasets: Object.fromEntries(['a', 'b'].map((name) => [name, { source: `./data/${name}` }])),
  })
  for (const name of ['a', 'b']) {
    await mkdir(join(world.directory, 'data', name), { recursive: true })
    await writeFile(join(world.directory, 'data', name, 'x'), name)
  }
  world.start(['agent'])
  await waitFor('the agent', () =>
    fetch(`http://${address}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    ),
  )
  await fetch(`http://${address}/metrics`) // counts from here on
  for (const [name, code] of [
    ['a', 0],
    ['a', 0],
    ['b', 5],
  ] as const)
    assert.equal((await world.dsc('prepare', name, '--task', 'job "1"')).code, code)
  return { world, address }
}

test('an agent says what it is, how long was waited, and why it refused, as promtool and Prometheus like it', {
  skip: needs('promtool', 'prometheus'),
}, async (context) => {
  const { address } = await runAgent(context)
  const text = await (await fetch(`http://${address}/metrics`)).text()
  assert.match(text, /^dsc_build_info\{version="[^"]+",node_version="[^"]+",node="node-a"\} 1$/m)
  assert.match(text, /^dsc_uses_total\{outcome="hit"\} 1$/m)
  assert.match(text, /^dsc_uses_total\{outcome="wait"\} 1$/m)
  assert.match(text, /^dsc_dataset_wait_seconds_bucket\{dataset="a",le="0"\} 1$/m)
  assert.match(text, /^dsc_job_wait_seconds_count\{task="job \\"1\\""\} 2$/m)
  assert.match(text, /^dsc_refusals_total\{reason="maxDatasets"\} 1$/m)
  execFileSync('promtool', ['check', 'metrics'], { input: text, stdio: ['pipe', 'inherit', 'pipe'] })
})

test('a real Prometheus takes the metrics and answers every question of the dashboard', {
  skip: needs('prometheus', 'prometheus'),
}, async (context) => {
  const { world, address } = await runAgent(context)
  const port = await findFreePort()
  const config = readFileSync(join(FOLDER, 'prometheus.yml'), 'utf8')
    .replace('127.0.0.1:7070', address)
    .replace('30s', '1s')
    .replace('alerts.yml', join(FOLDER, 'alerts.yml'))
  await writeFile(join(world.directory, 'prometheus.yml'), config)
  killWithTest(context)(
    [
      'prometheus',
      `--config.file=${world.directory}/prometheus.yml`,
      `--storage.tsdb.path=${world.directory}/tsdb`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { cwd: world.directory, environment: {} },
  )
  const ask = async (expression: string) => {
    const query = new URLSearchParams({ query: expression })
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/query?${query}`)
    return (await answer.json()) as {
      readonly status: string
      readonly error?: string
      readonly data?: { readonly result: readonly { readonly value: readonly [number, string] }[] }
    }
  }
  await waitFor('Prometheus to scrape', async () => {
    const up = await ask('up{job="dsc"}').catch(() => undefined)
    return up?.data?.result[0]?.value[1] === '1'
  })
  for (const expression of listExpressions()) {
    const filled = expression
      .replaceAll('$node', '.*')
      .replaceAll('$__rate_interval', '1m')
      .replaceAll('$__range', '1h')
    const { status, error } = await ask(filled)
    assert.equal(status, 'success', `${filled}: ${error}`)
  }
  const hits = await ask('dsc_uses_total{outcome="hit"}')
  assert.equal(hits.data?.result[0]?.value[1], '1')
  const rules = await (await fetch(`http://127.0.0.1:${port}/api/v1/rules`)).json()
  assert.match(JSON.stringify(rules), /"name":"DscRefusals".*"health":"(ok|unknown)"/)
})
