import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { DSC_IN_SHELL } from '../../testing/dsc-processes.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { joinRequest } from '../../testing/example-staging.js'
import { needs } from '../../testing/needs.js'
import { openTerminal } from '../../testing/tmux-terminal.js'
import { makeWorld, type World, waitFor } from '../../testing/world.js'

/** Commands that look at the configuration, the record or both. */
const COMMANDS = [
  ['config'],
  ['doctor'],
  ['status'],
  ['prepare', 'flowers', '--task', 't'],
  ['prepare', 'flowers', '--plan'],
  ['prepare', 's3://AKIA:CANARY@bucket/prefix/', '--task', 't'],
  ['run', 'flowers', '--', 'true'],
  ['release', 'flowers', '--task', 't'],
  ['evict', '--all', '--yes'],
  ['lock', 'flowers'],
  ['verify', 'flowers'],
  ['repair', 'flowers'],
  ['cleanup'],
  ['adopt', 'flowers', '.'],
  ['why', 'flowers'],
  ['history'],
  ['leases'],
  ['hint', 'flowers'],
  ['dataset', 'ls'],
  ['dataset', 'show', 'flowers'],
  ['dataset', 'add', 'more', 's3://AKIA:CANARY@bucket/prefix/'],
  ['record', 'forget-node', 'x', '--yes'],
  ['record', 'claim-node', '--yes'],
  ['record', 'migrate', 'postgres://u:CAN/CANARY@h/db', 'postgres://u:CANARY@h1,h2/db'],
  ['agent'],
  ['feed', 'storage', 'flowers'],
  ['feed', 'serve', 'flowers'],
  ['params', 'status', '--server', 'http://u:CANARY@127.0.0.1:1'],
  ['prepare', 's3://AKIA:CANARY@bucket/prefix/', '--task', 't', '--debug'],
  ['doctor', '--debug'],
]

/** Those that show most. */
const SOME = [
  ['config', '--json'],
  ['doctor'],
  ['status'],
  ['prepare', 'flowers', '--plan', '--json'],
  ['prepare', 's3://AKIA:CANARY@bucket/prefix/', '--task', 't'],
  ['dataset', 'ls'],
  ['dataset', 'show', 'flowers'],
  ['prepare', 'flowers', '--debug'],
]

const ENVIRONMENT = {
  PGPASSWORD: 'CANARY',
  AWS_ACCESS_KEY_ID: 'AKIA',
  AWS_SECRET_ACCESS_KEY: 'CANARY',
  DSC_FEED_TOKEN: 'CANARY',
}

/** Runs commands, a few at a time, and looks at all that they print. */
async function requireSilence(world: World, commands: readonly (readonly string[])[]) {
  const left = [...commands]
  const run = async () => {
    for (let words = left.shift(); words !== undefined; words = left.shift()) {
      const { stdout, stderr } = await world.start(words, { environment: ENVIRONMENT }).finished
      assert.doesNotMatch(stdout + stderr, /CANARY/, words.join(' '))
      assert.doesNotMatch(stderr, /internal error/, words.join(' '))
    }
  }
  await Promise.all([run(), run(), run()])
}

async function configureWithSecrets(world: World, record: string | undefined) {
  const token = join(world.directory, 'token')
  await writeFile(token, 'CANARY-CANARY-CANARY-CANARY')
  await world.configure({
    ...(record === undefined ? {} : { record }),
    agent: { listen: '127.0.0.1:0', tokenFile: token },
    datasets: { flowers: { source: 's3://bucket/', endpoint: 'http://u:CANARY@127.0.0.1:1' } },
  })
}

for (const [what, record, commands] of [
  ['a slash', 'postgres://dsc:12/CANARY@127.0.0.1:1/dsc', COMMANDS],
  ['a question mark', 'postgres://dsc:CANARY?CANARY@127.0.0.1:1/dsc', SOME],
  ['an at sign', 'postgres://dsc:CANARY@CANARY@127.0.0.1:1/dsc', SOME],
  ['two hosts, one of them wrong, behind it', 'postgres://dsc:CANARY@127.0.0.1:1,h:99999/dsc', SOME],
  ['an unknown scheme before it', 'mysql://dsc:CANARY@127.0.0.1:1,h:2/dsc', SOME],
] as const) {
  test(`no command shows a record password with ${what}`, async (context) => {
    const world = await makeWorld(context, { record })
    await configureWithSecrets(world, record)
    await requireSilence(world, commands)
  })
}

test('no command shows secrets of sources, or of a record that does not answer', async (context) => {
  const world = await makeWorld(context, {})
  await configureWithSecrets(world, undefined)
  await requireSilence(world, [
    ...SOME,
    ['dataset', 'show', 'flowers', '--json'],
    ['dataset', 'ls', '--json'],
    ['doctor', '--json'],
  ])
  await configureWithSecrets(world, 'postgres://dsc:CANARY@127.0.0.1:1/dsc?password=CANARY')
  await requireSilence(world, [['status'], ['doctor'], ['config', '--json']])
})

test('a password in a file that is no YAML, or under a mistyped key, is not shown', async (context) => {
  const world = await makeWorld(context, {})
  for (const text of [
    'record: "postgres://dsc:CANARY@h/db\nnode: x\n',
    'recrod: postgres://dsc:CAN/CANARY@h/db\n',
    'record: { url: "postgres://dsc:CANARY@h/db" }\n',
    'datasets: { a: { source: "s3x://AKIA:CANARY@h/db" } }\n',
    'datasets: { a: { source: "s3://b/", endpoint: "htp://AKIA:CANARY@h/db" } }\n',
  ]) {
    await writeFile(join(world.directory, 'dsc.yaml'), text)
    const { code, stdout, stderr } = await world.dsc('config')
    assert.equal(code, 3, stderr)
    assert.doesNotMatch(stdout + stderr, /CANARY/, text)
  }
})

test("neither the agent's log nor its answers show a secret", async (context) => {
  const world = await makeWorld(context, {})
  await configureWithSecrets(world, undefined)
  const agent = world.start(['agent', '--debug'], { environment: ENVIRONMENT })
  let url: string | undefined
  await waitFor('the agent', () => {
    const [row] = world.query<{ agent: string | null }>('SELECT agent FROM nodes')
    url = row?.agent ? JSON.parse(row.agent).url : undefined
    return url !== undefined
  })
  const authorization = 'Bearer CANARY-CANARY-CANARY-CANARY'
  const dataset = { name: 'flowers', source: 's3://bucket/', endpoint: 'http://u:CANARY@127.0.0.1:1' }
  const lease = { task: 't', holder: { kind: 'ttl' }, expiresAtMs: Date.now() + 60_000 }
  const answers = await Promise.all([
    fetch(`${url}/v2/prepare`, {
      method: 'POST',
      headers: { authorization },
      body: JSON.stringify({ dataset, lease }),
    }),
    fetch(`${url}/v2/prepare`, { method: 'POST', headers: { authorization }, body: '{"dataset":1}' }),
    fetch(`${url}/metrics`, { headers: { authorization } }),
    fetch(`${url}/v1/datasets/x/`, { headers: { authorization: 'Bearer CANARY' } }),
  ])
  const told = await Promise.all(answers.map((answer) => answer.text()))
  agent.process.kill('SIGTERM')
  const { stdout, stderr } = await agent.finished
  assert.match(told[0]!, /SOURCE_/, 'the source was asked')
  assert.doesNotMatch([...told, stdout, stderr].join('\n'), /CANARY/)
})

test('the live screen shows no secret of a source, nor of what failed', {
  skip: needs('tmux', 'tmux'),
}, async (context) => {
  const world = await makeWorld(context, {})
  await configureWithSecrets(world, undefined)
  const source = 's3://AKIA:CANARY@bucket/prefix/?X-Amz-Signature=CANARY'
  const record = await openSqliteRecord(world.recordPath)
  const staging = joinRequest('flowers', 'job', { source: { ...exampleCopy('flowers').source!, source } })
  await record.joinOrReserve({ ...staging, node: 'gpu-01' }, Date.now())
  await record.close()
  const terminal = await openTerminal(context, { columns: 200, rows: 50, directory: world.directory })
  await terminal.press(`${DSC_IN_SHELL} status`, 'Enter')
  const screens = [await terminal.waitFor(/s3:\/\/bucket\/prefix/)]
  for (const key of ['Tab', 'Tab', 'Tab', 'Enter']) {
    await terminal.press(key)
    await sleep(300)
    screens.push(await terminal.screen())
  }
  await terminal.press('q')
  assert.doesNotMatch(screens.flat().join('\n'), /CANARY/)
})
