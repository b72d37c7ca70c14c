import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'dsc-completion-'))
after(() => rmSync(root, { recursive: true }))

function dsc(...args: string[]) {
  const environment = { PATH: process.env.PATH, HOME: root }
  return spawnSync(process.execPath, [DSC, ...args], { cwd: root, env: environment, encoding: 'utf8' })
}

for (const shell of ['bash', 'zsh', 'fish']) {
  const isInstalled = spawnSync(shell, ['--version']).status === 0
  test(`the script for ${shell} is one that ${shell} can read, with every verb`, {
    skip: !isInstalled,
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
  assert.equal(dsc('completion', '--datasets').stdout, 'flowers\n')
  assert.equal(existsSync(path), false)
  const record = await openSqliteRecord(path)
  await record.saveDataset({ name: 'added', source: 's3://ml-data/b/', include: [], exclude: [] }, 0)
  await record.close()
  assert.equal(dsc('completion', '--datasets').stdout, 'added\nflowers\n')
})

test('a shell that is not known is a mistake of usage', () => {
  assert.equal(dsc('completion', 'tcsh').status, 2)
  assert.equal(dsc('completion').status, 2)
})
