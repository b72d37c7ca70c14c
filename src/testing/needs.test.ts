import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

const MODULE = new URL('needs.js', import.meta.url).href

function ask(program: string, environment: Readonly<Record<string, string>>): unknown {
  const script = `import { needs } from '${MODULE}'; console.log(JSON.stringify(needs('${program}', 'its-package')))`
  const words = ['--input-type=module', '--eval', script]
  return JSON.parse(execFileSync(process.execPath, words, { env: environment, encoding: 'utf8' }))
}

test('a missing program is a reason to skip that names its package, except where everything is said to be installed', () => {
  const missing = 'needs no-such-program (Debian: apt-get install its-package)'
  assert.equal(ask('no-such-program', { PATH: '/usr/bin:/bin' }), missing)
  assert.equal(ask('no-such-program', { PATH: '/usr/bin:/bin', DSC_TEST_COMPLETE: '1' }), false)
})

test('a program is found on PATH, by its path, and in sbin', () => {
  assert.equal(ask('sh', { PATH: '/nowhere:/bin' }), false)
  assert.equal(ask(process.execPath, { PATH: '/nowhere' }), false)
  assert.equal(ask('ldconfig', { PATH: '/nowhere' }), false)
})
