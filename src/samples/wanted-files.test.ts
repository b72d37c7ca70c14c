import assert from 'node:assert/strict'
import { test } from 'node:test'
import { matchWanted, parseWanted } from './wanted-files.js'

for (const { text, only } of [
  { text: 'png,jpg', only: ['png', 'jpg'] },
  { text: '.png, .tar.gz', only: ['png', 'tar.gz'] },
  { text: '*.{jpg,png}', only: ['*.{jpg,png}'] },
  { text: 'data/{a,b}-*.csv,txt', only: ['data/{a,b}-*.csv', 'txt'] },
  { text: './data/*.csv', only: ['./data/*.csv'] },
  { text: '.github/*.md,.env*', only: ['.github/*.md', '.env*'] },
  { text: 'a{b,c', only: ['a{b', 'c'] },
  { text: 'png,', only: ['png'] },
])
  test(`--only ${text} has ${only.length} parts`, () => {
    assert.deepEqual(parseWanted(text), only)
  })

for (const { only, path, isWanted = true } of [
  { only: 'png,jpg', path: 'cats/1.jpg' },
  { only: 'png,jpg', path: 'cats/1.jpgx', isWanted: false },
  { only: '*.{jpg,png}', path: 'cats/1.png' },
  { only: '*.{jpg,png}', path: 'cats/1.gif', isWanted: false },
  { only: './data/*.csv', path: 'data/a.csv' },
  { only: 'data/*.csv', path: 'data/b/a.csv', isWanted: false },
])
  test(`--only ${only} ${isWanted ? 'takes' : 'leaves out'} ${path}`, () => {
    assert.equal(matchWanted(parseWanted(only))(path), isWanted)
  })
