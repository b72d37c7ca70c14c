import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DscError } from './dsc-error.js'
import { escapeControls } from './escape-controls.js'

test('escapeControls leaves nothing that a terminal obeys, and all other text', () => {
  assert.equal(escapeControls('a\tb\nc é 日本 😀'), 'a\tb\nc é 日本 😀')
  for (let code = 0; code < 0x2100; code += 1) {
    const sign = String.fromCharCode(code)
    const isControl = /[\p{Cc}\p{Zl}\p{Zp}]|\p{Bidi_Control}/u.test(sign) && sign !== '\n' && sign !== '\t'
    const expected = isControl ? `\\u${code.toString(16).padStart(4, '0')}` : sign
    assert.equal(escapeControls(sign), expected, code.toString(16))
  }
  assert.deepEqual(JSON.parse(escapeControls(JSON.stringify({ key: 'a\u009b\u202e\r' }))), {
    key: 'a\u009b\u202e\r',
  })
})

test('no failure says what a terminal obeys', () => {
  const failure = new DscError('KEY_UNSAFE', 's3://b/a\u009b31m\u001b[2J', { hint: 'rename \u202e' })
  assert.equal(failure.message, 's3://b/a\\u009b31m\\u001b[2J')
  assert.equal(failure.hint, 'rename \\u202e')
})
