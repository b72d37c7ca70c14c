import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { judgeToken, readTokens } from './authorize.js'

test('a token file holds several tokens, of which the first is shown and all are accepted', async (context) => {
  const path = join(await temporaryDirectory(context), 'token')
  await writeFile(
    path,
    'new-token-of-all-agents\nold-token-of-all-agents\n\nread token-for-pods-only\nread one of several words\n',
  )
  const { own, accepted } = await readTokens(path)
  assert.equal(own, 'new-token-of-all-agents')
  const may = (token: string) => judgeToken(`Bearer ${token}`, accepted)
  assert.deepEqual(
    [
      'new-token-of-all-agents',
      'old-token-of-all-agents',
      'token-for-pods-only',
      'one of several words',
      'another',
    ].map(may),
    ['all', 'all', 'read', 'read', 'nothing'],
  )
  assert.equal(judgeToken(undefined, accepted), 'nothing')
  assert.equal(judgeToken(undefined, undefined), 'all')
  await writeFile(path, 'read token-for-pods-only\n')
  assert.equal((await readTokens(path)).own, 'token-for-pods-only')
})

for (const text of ['', 'short\n', 'long-enough-to-be-one\nshort\n', 'read short']) {
  test(`a token file with ${JSON.stringify(text)} is refused`, async (context) => {
    const path = join(await temporaryDirectory(context), 'token')
    await writeFile(path, text)
    await assert.rejects(readTokens(path), { code: 'CONFIG_INVALID', message: /at least 16 characters/ })
  })
}

test('a token that no header can hold is refused, and named by its character', async (context) => {
  const path = join(await temporaryDirectory(context), 'token')
  await writeFile(path, 'a token that costs 5 \u20ac\n')
  await assert.rejects(readTokens(path), { code: 'CONFIG_INVALID', message: /U\+20AC/ })
  await writeFile(path, 'a token with \u00fc and spaces\n')
  assert.equal((await readTokens(path)).own, 'a token with \u00fc and spaces')
})
