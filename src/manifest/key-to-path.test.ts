import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { keyToPath, pathToKey } from './key-to-path.js'

for (const { key, problem } of [
  { key: '', problem: 'is empty' },
  { key: '/etc/passwd', problem: 'is absolute' },
  { key: 'a//b', problem: 'has an empty segment' },
  { key: 'a/', problem: 'ends in "/" but holds bytes' },
  { key: '..', problem: 'has a "." or ".." segment' },
  { key: 'a/../../b', problem: 'has a "." or ".." segment' },
  { key: './a', problem: 'has a "." or ".." segment' },
  { key: 'a\0b', problem: 'contains NUL' },
  { key: 'a\nb', problem: 'contains a control character' },
  { key: 'a\x1b[2Jb', problem: 'contains a control character' },
  { key: 'a\x9bb', problem: 'contains a control character' },
  { key: '..\\..\\b', problem: 'contains a backslash' },
  { key: 'a\ud800', problem: 'is not valid Unicode' },
  { key: `a/${'b'.repeat(256)}`, problem: 'has a segment over 255 bytes' },
  { key: 'ü'.repeat(128), problem: 'has a segment over 255 bytes' },
  { key: `${'a/'.repeat(512)}b`, problem: 'is over 1,024 bytes' },
]) {
  test(`keyToPath refuses ${JSON.stringify(key.slice(0, 24))}, which ${problem}`, () => {
    assert.deepEqual(keyToPath(key), { path: null, problem })
  })
}

for (const key of [
  'a',
  '.hidden',
  '...',
  'a b/ü%2F+.jpg',
  '-rf',
  `${'b'.repeat(255)}`,
  '~/x',
  'CON',
  'a:b',
  '日本/語.png',
]) {
  test(`keyToPath keeps ${JSON.stringify(key.slice(0, 24))} as it is`, () => {
    assert.deepEqual(keyToPath(key), { path: key, problem: null })
  })
}

/** Keys made of dangerous pieces, so that most of the interesting cases come up. */
const hostileKey = fc
  .array(
    fc.oneof(
      fc.constantFrom('..', '.', '/', '\\', '\0', '\n', '%2F', '%', 'a', 'A', 'ü', '\ud800'),
      fc.string({ unit: 'binary' }),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(''))

test('keyToPath never leaves the root, whatever the key', () => {
  fc.assert(
    fc.property(hostileKey, (key) => {
      const { path } = keyToPath(key)
      if (path === null) return
      const resolved = posix.resolve('/root/files', path)
      assert.ok(resolved.startsWith('/root/files/'), resolved)
      assert.equal(resolved, `/root/files/${path}`, 'nothing is normalized away, so two keys cannot meet')
    }),
    { numRuns: 20_000 },
  )
})

test('pathToKey undoes keyToPath', () => {
  fc.assert(
    fc.property(hostileKey, (key) => {
      const { path } = keyToPath(key)
      if (path !== null) assert.equal(pathToKey(path), key)
    }),
    { numRuns: 20_000 },
  )
})
