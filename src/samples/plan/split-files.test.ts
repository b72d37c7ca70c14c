import assert from 'node:assert/strict'
import { test } from 'node:test'
import { filesOfSplit, findNamedSplits } from './split-files.js'

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
  { path: 'all/auxiliary_train-0.parquet', split: 'train', isOne: false },
  { path: 'all/auxiliary_train-00000-of-00001.parquet', split: 'auxiliary_train' },
  { path: 'data/train_sft-00000-of-00001.parquet', split: 'train_sft' },
  { path: 'data/train_sft-00000-of-00001.parquet', split: 'train' },
  { path: 'data/imagenet-train-000001.tar', split: 'train' },
  { path: 'Train/0.jsonl', split: 'Train' },
])
  test(`${path} is ${isOne ? '' : 'not '}of the split ${split}`, () => {
    assert.equal(filesOfSplit([path], (each) => each, split).length === 1, isOne)
  })

for (const { files, split, found } of [
  { files: ['dev-0.csv', 'validation-0.csv'], split: 'validation', found: ['validation-0.csv'] },
  { files: ['dev-0.csv', 'validation-0.csv'], split: 'dev', found: ['dev-0.csv'] },
  { files: ['dev-0.csv', 'valid-0.csv'], split: 'validation', found: ['dev-0.csv', 'valid-0.csv'] },
  { files: ['test.csv', 'eval.csv'], split: 'eval', found: ['eval.csv'] },
  { files: ['test.csv', 'train.csv'], split: 'eval', found: ['test.csv'] },
  {
    files: ['train-0.csv', 'my_train.csv', 'train/1.csv'],
    split: 'train',
    found: ['train-0.csv', 'train/1.csv'],
  },
  { files: ['train_sft-0.csv', 'train-0.csv'], split: 'train', found: ['train-0.csv'] },
  { files: ['train-0.csv'], split: 'test', found: [] },
  // A picture's own name does not take it out of its folder (datasets#4895).
  {
    files: ['train/cat/val_234.png', 'train/a.png', 'val/cat/train_7.png'],
    split: 'validation',
    found: ['val/cat/train_7.png'],
  },
  {
    files: ['train/cat/val_234.png', 'val/cat/train_7.png'],
    split: 'train',
    found: ['train/cat/val_234.png'],
  },
  { files: ['train/cat/val_234.png', 'validation/0.png'], split: 'val', found: ['validation/0.png'] },
  { files: ['train/train.csv', 'train/val.csv'], split: 'val', found: ['train/val.csv'] },
  { files: ['train/own-0.csv', 'test/0.csv'], split: 'own', found: ['train/own-0.csv'] },
])
  test(`of ${files.join(', ')}, the split ${split} has ${found.join(', ') || 'none'}`, () => {
    const of = files.map((path) => ({ path }))
    assert.deepEqual(
      filesOfSplit(of, ({ path }) => path, split).map(({ path }) => path),
      found,
    )
  })

test('splits are told apart by names where there are several', () => {
  assert.deepEqual(findNamedSplits(['a/train-0.csv', 'a/dev-0.csv']), ['train', 'validation'])
  assert.deepEqual(findNamedSplits(['train-0.csv', 'train-1.csv']), [])
  assert.deepEqual(findNamedSplits(['0.csv']), [])
})

for (const files of [
  ['coco_train-000.tar', 'coco_val-000.tar'],
  ['a/coco_training-000.tar', 'b/coco_eval-000.tar'],
  ['all/auxiliary_train-0.csv', 'all/test-0.csv', 'all/dev-0.csv'],
  ['x_train-0.csv', 'train_x-0.csv', 'x_test-0.csv'],
])
  test(`each split that the names of ${files.join(', ')} tell apart has files`, () => {
    const splits = findNamedSplits(files)
    assert.equal(splits.length, 2)
    for (const split of splits) assert.ok(filesOfSplit(files, (each) => each, split).length > 0, split)
  })
