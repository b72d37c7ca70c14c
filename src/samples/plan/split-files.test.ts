import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findNamedSplits, isOfSplit } from './split-files.js'

for (const { path, split, isOne = true } of [
  { path: 'data/train-00000-of-00002.parquet', split: 'train' },
  { path: 'train.csv', split: 'train' },
  { path: 'my_train_file.jsonl', split: 'train' },
  { path: 'default/validation/0.parquet', split: 'validation' },
  { path: 'data/val-0.parquet', split: 'validation' },
  { path: 'data/validation-0.parquet', split: 'val' },
  { path: 'data/own-0.parquet', split: 'own' },
  { path: 'data/trained-0.parquet', split: 'train', isOne: false },
  { path: 'data/train2.parquet', split: 'train', isOne: false },
  { path: 'data/test-00000-of-00001.parquet', split: 'train', isOne: false },
  { path: 'data/0.train', split: 'train', isOne: false },
])
  test(`${path} is ${isOne ? '' : 'not '}of the split ${split}`, () => {
    assert.equal(isOfSplit(path, split), isOne)
  })

test('splits are told apart by names where there are several', () => {
  assert.deepEqual(findNamedSplits(['a/train-0.csv', 'a/dev-0.csv']), ['train', 'validation'])
  assert.deepEqual(findNamedSplits(['train-0.csv', 'train-1.csv']), [])
  assert.deepEqual(findNamedSplits(['0.csv']), [])
})
