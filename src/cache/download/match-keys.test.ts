import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKeyMatcher } from './match-keys.js'

for (const { include = [], exclude = [], key, isTaken } of [
  { key: 'any/thing', isTaken: true },
  { include: ['**/*.jpg'], key: 'a.jpg', isTaken: true },
  { include: ['**/*.jpg'], key: 'x/y/a.jpg', isTaken: true },
  { include: ['**/*.jpg'], key: 'a.jpg.txt', isTaken: false },
  { include: ['*.jpg'], key: 'x/a.jpg', isTaken: true },
  { include: ['x/*.jpg'], key: 'x/y/a.jpg', isTaken: false },
  { include: ['a.*'], key: 'x/y/a.jpg', isTaken: true },
  { include: ['labels.csv', 'train/**'], key: 'train/0/1.png', isTaken: true },
  { include: ['{train,val}/**'], key: 'test/1.png', isTaken: false },
  { include: ['**'], exclude: ['**/*.tmp'], key: 'a/b.tmp', isTaken: false },
  { include: ['a.tmp'], exclude: ['*.tmp'], key: 'a.tmp', isTaken: false },
  { include: ['**'], key: '.hidden/.file', isTaken: true },
  { exclude: ['../evil'], key: '../evil', isTaken: false },
  { exclude: ['a//b'], key: 'a//b', isTaken: false },
  { exclude: ['a\\b'], key: 'a\\b', isTaken: false },
  { exclude: ['!keep'], key: 'keep', isTaken: true },
  { include: ['img[0-9].png'], key: 'img[0-9].png', isTaken: true },
]) {
  test(`include ${JSON.stringify(include)} exclude ${JSON.stringify(exclude)} ${isTaken ? 'takes' : 'leaves'} ${JSON.stringify(key)}`, () => {
    assert.equal(createKeyMatcher({ include, exclude })(key), isTaken)
  })
}

test('an empty glob is refused', () => {
  assert.throws(() => createKeyMatcher({ include: [''], exclude: [] }), { code: 'CONFIG_INVALID' })
})
