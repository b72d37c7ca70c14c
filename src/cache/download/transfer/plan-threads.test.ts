import assert from 'node:assert/strict'
import { test } from 'node:test'
import { planThreads } from './plan-threads.js'

const MIB = 1024 * 1024
const large = { cores: 4, concurrency: 64, files: 1000, bytes: 10_000 * MIB }
for (const { name, download, threads } of [
  { name: 'uses every core for a large download', download: large, threads: 4 },
  { name: 'uses no more than 8', download: { ...large, cores: 96 }, threads: 8 },
  { name: 'uses no more than there may be requests', download: { ...large, concurrency: 1 }, threads: 1 },
  { name: 'starts no thread for little', download: { ...large, files: 10, bytes: MIB }, threads: 0 },
  { name: 'starts one where one is worth it', download: { ...large, files: 1, bytes: 20 * MIB }, threads: 1 },
  { name: 'counts files as well as bytes', download: { ...large, files: 512, bytes: 0 }, threads: 2 },
  {
    name: 'leaves a core to the thread that hands out small objects',
    download: { ...large, files: 20_000, bytes: 200 * MIB },
    threads: 3,
  },
  {
    name: 'uses one thread for small objects on one core',
    download: { ...large, cores: 1, files: 20_000, bytes: 200 * MIB },
    threads: 1,
  },
]) {
  test(`planThreads ${name}`, () => assert.equal(planThreads(download), threads))
}
