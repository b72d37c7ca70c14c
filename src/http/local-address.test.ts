import assert from 'node:assert/strict'
import { lookup } from 'node:dns'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { isLocalHost, lookupElsewhere } from './local-address.js'

for (const host of [
  'localhost',
  'a.localhost.',
  '127.0.0.1',
  '127.9.9.9',
  '0.0.0.0',
  '169.254.169.254',
  '[::1]',
  '[::]',
  '[fe80::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[fd00:ec2::254]',
  new URL('http://2130706433/').hostname,
]) {
  test(`${host} is this machine or its link`, () => assert.equal(isLocalHost(host), true))
}

for (const host of ['data.example', 'localhost.example', '10.0.0.1', '192.168.0.1', '[2001:db8::1]']) {
  test(`${host} is another machine`, () => assert.equal(isLocalHost(host), false))
}

test('a name that leads to this machine is refused', async () => {
  const found = promisify(lookup)('localhost')
  assert.ok((await found).address)
  const error = await new Promise((resolve) => lookupElsewhere('localhost', { all: true }, resolve))
  assert.equal((error as NodeJS.ErrnoException).code, 'LOCAL_ADDRESS')
})
