import assert from 'node:assert/strict'
import { test } from 'node:test'
import { suggestRun } from './run.js'

for (const { words, suggested } of [
  { words: ['digits', 'python', 'train.py'], suggested: 'dsc run digits -- python train.py' },
  { words: ['imagenet', 'labels', 'sh', 'a.sh'], suggested: 'dsc run imagenet labels -- sh a.sh' },
  { words: ['imagenet', 'labels'], suggested: 'dsc run imagenet labels -- python train.py' },
  { words: ['python'], suggested: 'dsc run python -- python train.py' },
])
  test(`dsc run ${words.join(' ')} is told to try ${suggested}`, () => {
    assert.equal(
      suggestRun(words, (word) => ['python', 'sh'].includes(word)),
      suggested,
    )
  })
