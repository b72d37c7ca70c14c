import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgePass, nameHolder, PASS_MS, signPass } from './copy-pass.js'

const TOKEN = 'a token that all agents share'
const NOW_MS = 1_700_000_000_000
const PASS = { copyId: 'copy-1', by: nameHolder(64_001, 'gpu 7'), expiresAtMs: NOW_MS + PASS_MS }
const GOOD = signPass(TOKEN, PASS)

const judge = (
  text: string,
  changes: { copyId?: string; token?: string; nowMs?: number; read?: boolean } = {},
) => {
  const { copyId = 'copy-1', token = TOKEN, nowMs = NOW_MS, read = false } = changes
  const tokens = [
    { text: 'another token of theirs', mayOnlyRead: false },
    { text: token, mayOnlyRead: read },
  ]
  return judgePass(`Bearer ${text}`, { copyId, tokens, nowMs })
}

test('a pass that an agent signed opens its copy, until it expires, at every agent of the token', () => {
  assert.deepEqual(judge(GOOD), PASS)
  assert.deepEqual(judge(GOOD, { nowMs: PASS.expiresAtMs - 1 }), PASS)
})

for (const [what, text, changes] of [
  ['of another copy', GOOD, { copyId: 'copy-2' }],
  ['that has expired', GOOD, { nowMs: PASS.expiresAtMs }],
  ['of another token', GOOD, { token: 'some other token of agents' }],
  ['of a token that may only read', GOOD, { read: true }],
  ['with a later end', GOOD.replace(/\d+\./, `${PASS.expiresAtMs / 1000 + 60}.`), {}],
  ['with another copy', GOOD.replace('copy-1', 'copy-2'), { copyId: 'copy-2' }],
  ['with another user', GOOD.replace('64001@', '64002@'), {}],
  ['with another signature', GOOD.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')), {}],
  ['without a signature', GOOD.replace(/\.[^.]*$/, ''), {}],
  ['that lasts for ever', signPass(TOKEN, { ...PASS, expiresAtMs: NOW_MS + 365 * 86_400_000 }), {}],
  ['that is empty', 'pass:', {}],
] as const)
  test(`a pass ${what} opens nothing`, () => assert.equal(judge(text, changes), undefined))
