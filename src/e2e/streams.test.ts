import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { DSC_IN_SHELL as PROGRAM } from '../testing/dsc-processes.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'
import { makeWorld } from '../testing/world.js'

test('help that nobody reads to its end is no error', () => {
  const { status, stderr } = spawnSync('bash', ['-c', `set -o pipefail; ${PROGRAM} --help | true`], {
    encoding: 'utf8',
  })
  assert.deepEqual([status, stderr], [0, ''])
})

test('a warm prepare succeeds where stderr is full', async (context) => {
  const folder = await temporaryDirectory(context)
  mkdirSync(join(folder, 'flowers'))
  writeFileSync(join(folder, 'flowers/1.jpg'), 'a rose')
  const world = await makeWorld(context, { datasets: { flowers: { source: `file://${folder}/flowers/` } } })
  for (const how of ['cold', 'warm']) {
    const path = execFileSync('bash', ['-c', `${world.commandLine('prepare', 'flowers')} 2> /dev/full`], {
      cwd: world.directory,
      encoding: 'utf8',
    })
    assert.match(path, /copies\/flowers\//, how)
  }
})

for (const words of ['status', 'prepare flowers', 'init', 'doctor', 'evict flowers', 'adopt data']) {
  test(`dsc ${words} in a folder that is gone says so, without a stack`, async (context) => {
    const folder = await temporaryDirectory(context)
    const script = `mkdir ${folder}/gone; cd ${folder}/gone; rmdir ${folder}/gone; ${PROGRAM} ${words}`
    const { status, stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8' })
    assert.equal(status, 2, stderr)
    assert.match(stderr, /^dsc: the folder that dsc was called in is gone\n {2}try: cd to one that exists$/m)
  })
}
