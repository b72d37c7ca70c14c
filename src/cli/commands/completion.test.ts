import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { needs } from '../../testing/needs.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'dsc-completion-'))
after(() => rmSync(root, { recursive: true }))

function dsc(...args: string[]) {
  const environment = { PATH: process.env.PATH, HOME: root }
  return spawnSync(process.execPath, [DSC, ...args], { cwd: root, env: environment, encoding: 'utf8' })
}

for (const shell of ['bash', 'zsh', 'fish']) {
  test(`the script for ${shell} is one that ${shell} can read, with every verb`, {
    skip: needs(shell, shell),
  }, () => {
    const { stdout, stderr } = dsc('completion', shell)
    assert.equal(stderr, '')
    for (const word of ['config', 'doctor', 'init', 'completion', 'exit-codes'])
      assert.match(stdout, new RegExp(word))
    const script = join(root, `completion.${shell}`)
    writeFileSync(script, stdout)
    const read = spawnSync(shell, ['-n', script], { encoding: 'utf8' })
    assert.equal(read.stderr, '')
    assert.equal(read.status, 0)
  })
}

test('the names of datasets come from dsc.yaml and from the record, which asking does not create', async () => {
  const path = join(root, 'record.db')
  writeFileSync(join(root, 'dsc.yaml'), `record: ${path}\ndatasets: { flowers: { source: s3://ml-data/ } }\n`)
  assert.equal(dsc('completion', '--list', 'datasets').stdout, 'flowers\n')
  assert.equal(existsSync(path), false)
  const record = await openSqliteRecord(path)
  await record.saveDataset({ name: 'added', source: 's3://ml-data/b/', include: [], exclude: [] }, 0)
  await record.close()
  assert.equal(dsc('completion', '--list', 'datasets').stdout, 'added\nflowers\n')
})

test('nodes, and the tasks and ids of leases, come from the record', () => {
  const config = join(root, 'other.yaml')
  const list = (what: string) => dsc('completion', '--list', what, '--config', config).stdout
  mkdirSync(join(root, 'data'))
  writeFileSync(join(root, 'data/1.txt'), '1')
  writeFileSync(config, `record: other.db\nnode: gpu-07\ncache: { root: cache }\n`)
  assert.equal(list('nodes'), '')
  dsc('prepare', `file://${root}/data/`, '--task', 'job-9', '--config', config)
  assert.equal(list('nodes'), 'gpu-07\n')
  assert.equal(list('tasks'), 'job-9\n')
  const { leases } = JSON.parse(dsc('leases', '--json', '--config', config).stdout)
  assert.equal(list('leases'), `${leases[0]?.leaseId}\n`)
})

test('a shell that is not known is a mistake of usage', () => {
  assert.equal(dsc('completion', 'tcsh').status, 2)
  assert.equal(dsc('completion').status, 2)
})
