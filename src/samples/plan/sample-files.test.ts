import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RECOGNITIONS } from '../formats/formats.js'
import { mayBeMarked, planSampleFiles } from './sample-files.js'

/** Chooses among files given as path → size in bytes. */
function plan(sizes: Readonly<Record<string, number>>) {
  const files = Object.entries(sizes).map(([path, size]) => ({ path, size }))
  const {
    format,
    files: chosen,
    leftOut,
  } = planSampleFiles(files, {
    formats: RECOGNITIONS,
    folder: 'data',
  })
  return { format, fed: chosen.map(({ path }) => path), left: leftOut.map(({ path }) => path).sort() }
}

const pictures = (count: number, size: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`images/${i}.png`, size]))

for (const { name, files, format, fed } of [
  {
    name: 'a card and its picture outweigh the table of a hub',
    files: { 'README.md': 15_000, 'assets/teaser.png': 200_000, 'data/train-00000-of-00001.parquet': 3000 },
    format: 'parquet',
    fed: ['data/train-00000-of-00001.parquet'],
  },
  {
    name: 'a table at the top beside four pictures',
    files: { 'a.parquet': 500, 'README.md': 9000, ...pictures(4, 100_000) },
    format: 'parquet',
    fed: ['a.parquet'],
  },
  {
    name: 'three MDS samples whose index is larger',
    files: { 'index.json': 2000, 'shard.00000.mds': 300 },
    format: 'mds',
    fed: ['shard.00000.mds'],
  },
  {
    name: 'what Spark writes beside small tables',
    files: { _SUCCESS: 0, '_delta_log/0.json': 9000, '._SUCCESS.crc': 8, 'part-0.parquet': 800 },
    format: 'parquet',
    fed: ['part-0.parquet'],
  },
  {
    name: 'lines of a hub beside the pictures of its card',
    files: { 'train.jsonl': 900, 'test.jsonl': 900, 'figure.pdf': 90_000 },
    format: 'jsonl',
    fed: ['train.jsonl', 'test.jsonl'],
  },
  {
    name: 'pictures that a table describes',
    files: { 'metadata.parquet': 5000, ...pictures(40, 9000) },
    format: 'files',
    fed: ['metadata.parquet', ...Object.keys(pictures(40, 0))],
  },
  {
    name: 'pictures beside a list of their labels',
    files: { 'labels.csv': 100, ...pictures(3, 9000) },
    format: 'files',
    fed: ['labels.csv', ...Object.keys(pictures(3, 0))],
  },
  {
    name: 'texts alone, one of them a README',
    files: { 'README.md': 9 },
    format: 'files',
    fed: ['README.md'],
  },
  {
    name: 'texts beside a README and a license',
    files: { 'README.md': 9000, LICENSE: 9000, 'a.txt': 5 },
    format: 'files',
    fed: ['a.txt'],
  },
])
  test(`the samples of a folder are judged by names: ${name}`, () => {
    const found = plan(files)
    assert.deepEqual([found.format, found.fed], [format, fed])
    const left = Object.keys(files).filter((path) => !fed.includes(path))
    assert.deepEqual(found.left, left.sort(), 'everything else is told')
    if (found.format !== 'files' || left.length > 0)
      assert.ok(mayBeMarked(Object.keys(files).join('\0'), RECOGNITIONS), 'a short look sees that, too')
  })

test('a short look at many paths takes plain files for such, and no other file', () => {
  const plain = ['a/b.png', 'a/no_readme', 'thumbs.db.png', 'e'].join('\0')
  assert.equal(mayBeMarked(plain, RECOGNITIONS), false)
  for (const path of [
    '.a',
    'a/.git/b',
    '_a',
    'x/_a/b',
    'README',
    'a/readme.md',
    'A.TAR',
    'b.tgz',
    'c.arrow',
    'd\n.e/f',
  ])
    for (const text of [`${path}\0${plain}`, `${plain}\0${path}\0${plain}`, `${plain}\0${path}`])
      assert.ok(mayBeMarked(text, RECOGNITIONS), path)
})

test('every path that a format takes has its mark, so that no file of samples is passed over', () => {
  const ends = [
    '',
    '.tar',
    '.jsonl',
    '.ndjson',
    '.csv',
    '.tsv',
    '.parquet',
    '.parq',
    '.pq',
    '.mds',
    '.zstd',
    '.gz',
    '.br',
    '.bin',
  ]
  const names = ['a', 'chunk-0-1', 'CHUNK-0-1', 'shard.00000'].flatMap((name) => [name, `x/${name}`])
  const paths = names.flatMap((name) => ends.flatMap((end) => ends.map((last) => `${name}${end}${last}`)))
  const all = [...paths, ...paths.map((path) => path.toUpperCase())]
  for (const [format, { mark, holdsSamples }] of Object.entries(RECOGNITIONS)) {
    const taken = all.filter((path) => holdsSamples(path, (other) => other.endsWith('index.json')))
    assert.ok(taken.length > 0, format)
    if (!mark) assert.equal(format, 'files')
    else for (const path of taken) assert.match(path, new RegExp(mark, 'i'))
  }
})
