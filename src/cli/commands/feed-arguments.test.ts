import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError } from 'commander'
import { parseMix } from './feed-arguments.js'

test('parseMix reads how often each part is visited, and takes no missing number for 0', () => {
  assert.deepEqual(parseMix('web=1, code=2.5'), { web: 1, code: 2.5 })
  for (const raw of ['', 'web', 'web=', 'web= ,code=1', 'web=x', '=1', 'web=1,web=2'])
    assert.throws(() => parseMix(raw), InvalidArgumentError, raw)
})
