import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const DSC = fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))

/** Starts dsc in a process that claims to be another version of Node. */
function startOn(version: string) {
  const script = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })
process.argv.push('dsc', '--version')
require('${DSC}')`
  return spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
}

for (const { version, isTooOld } of [
  { version: '20.20.2', isTooOld: true },
  { version: '22.12.0', isTooOld: true },
  { version: '22.13.1', isTooOld: true },
  { version: '22.14.0', isTooOld: false },
  { version: '24.0.0', isTooOld: false },
]) {
  test(`on Node ${version} dsc ${isTooOld ? 'says what it needs, before better-sqlite3 crashes' : 'starts'}`, () => {
    const { status, stderr } = startOn(version)
    if (isTooOld)
      assert.deepEqual(
        [status, stderr.split('\n')[0]],
        [3, `dsc needs Node 22.14 or newer, but ${process.execPath} is ${version}.`],
      )
    else assert.equal(status, 0, stderr)
  })
}

test('the README and the package name the oldest Node that works', () => {
  const { engines } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  assert.equal(engines.node, '>=22.14.0')
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  assert.deepEqual(readme.match(/Node 22\.\d+/g), ['Node 22.14'])
})
