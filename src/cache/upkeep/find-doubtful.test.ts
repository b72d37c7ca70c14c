import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CopyPlace } from '../../records/contract/record-store.js'
import { findDoubtful, type Glance } from './find-doubtful.js'

const ROOT = '/cache/copies'
const place = (dataset: string, changes: Partial<CopyPlace> = {}): CopyPlace => ({
  dataset,
  isPlain: true,
  path: `${ROOT}/${dataset}/v1-1/files`,
  ...changes,
})
/** One ready copy, whose folder has one folder in it. */
const PLAIN: Glance = {
  copiesRoot: ROOT,
  links: new Map([['flowers', 3]]),
  places: [place('flowers')],
  isGone: () => false,
}

for (const { name, seen, doubtful } of [
  { name: 'passes over a ready copy that lies alone in its folder', seen: {}, doubtful: [] },
  {
    name: 'doubts a folder with another beside the copy',
    seen: { links: new Map([['flowers', 4]]) },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts a folder without a folder',
    seen: { links: new Map([['flowers', 2]]) },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts what a file system without numbers of links says',
    seen: { links: new Map([['flowers', 1]]) },
    doubtful: ['flowers'],
  },
  { name: 'doubts a copy whose folder is not there', seen: { links: new Map() }, doubtful: ['flowers'] },
  {
    name: 'doubts a copy whose files are gone',
    seen: { isGone: (path: string) => path.endsWith('flowers/v1-1/files') },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts a folder that the record does not know',
    seen: {
      links: new Map([
        ['flowers', 3],
        ['birds', 3],
      ]),
    },
    doubtful: ['birds'],
  },
  {
    name: 'doubts a copy that lies elsewhere',
    seen: { places: [place('flowers', { path: '/old/copies/flowers/v1-1/files' })] },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts a copy in the folder of another dataset',
    seen: { places: [place('flowers', { path: `${ROOT}/flowers-2/v1-1/files` })] },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts two copies of a dataset',
    seen: { places: [place('flowers'), place('flowers')] },
    doubtful: ['flowers'],
  },
  {
    name: 'doubts a staging, an adopted folder, and what somebody repairs',
    seen: { places: [place('flowers', { isPlain: false })] },
    doubtful: ['flowers'],
  },
] as const satisfies readonly { name: string; seen: Partial<Glance>; doubtful: readonly string[] }[]) {
  test(`findDoubtful ${name}`, () => {
    assert.deepEqual([...findDoubtful({ ...PLAIN, ...seen })], doubtful)
  })
}
