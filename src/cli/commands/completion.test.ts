import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { needs } from '../../testing/needs.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const root = mkdtempSync(join(tmpdir(), 'dsc-completion-'))
after(() => rmSync(root, { recursive: true }))

function dsc(...args: string[]) {
  return dscWith({}, ...args)
}

function dscWith(variables: Readonly<Record<string, string>>, ...args: string[]) {
  const environment = { PATH: process.env.PATH, HOME: root, ...variables }
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

for (const { shell, path } of [
  { shell: 'bash', path: '.local/share/bash-completion/completions/dsc' },
  { shell: 'zsh', path: '.local/share/zsh/site-functions/_dsc' },
  { shell: 'fish', path: '.config/fish/completions/dsc.fish' },
])
  test(`completion install writes the script to where ${shell} looks, again without a trace`, {
    skip: needs(shell, shell),
  }, () => {
    for (const words of [['install', shell], ['install']]) {
      const installed = dscWith({ SHELL: `/usr/bin/${shell}` }, 'completion', ...words)
      assert.equal(installed.stdout, `${join(root, path)}\n`, installed.stderr)
    }
    assert.equal(`${readFileSync(join(root, path), 'utf8')}\n`, dsc('completion', shell).stdout)
    assert.deepEqual(readdirSync(dirname(join(root, path))), [basename(path)])
    if (shell !== 'fish') return
    // fish completes commands that exist.
    const programs = join(root, 'bin')
    mkdirSync(programs)
    symlinkSync(DSC, join(programs, 'dsc'))
    const environment = { PATH: `${programs}:${process.env.PATH}`, HOME: root }
    const offered = spawnSync(shell, ['-c', 'complete -C "dsc compl"'], {
      env: environment,
      encoding: 'utf8',
    })
    assert.match(offered.stdout, /^completion/m)
  })

test('completion install wants a shell that it knows', () => {
  const refused = dscWith({ SHELL: '/bin/tcsh' }, 'completion', 'install')
  assert.equal(refused.status, 2)
  assert.match(refused.stderr, /found tcsh\n {2}try: dsc completion install bash\|zsh\|fish/)
})

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
