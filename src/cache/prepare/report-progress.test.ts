import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportProgress } from './report-progress.js'

test('a source that does not answer is told of once, however often it is asked again', () => {
  const notes: string[] = []
  const report = {
    note: (sentence: string) => void notes.push(sentence),
    warn: () => {},
    progress: () => {},
  }
  const listen = reportProgress(report, 'flowers', () => 0)
  for (const attemptsLeft of [2, 1])
    listen({ step: 'retrying', problem: 'no connection to http://s3.example', attemptsLeft })
  assert.deepEqual(notes, ['flowers: no connection to http://s3.example; retrying, up to 2 more times'])
})

test('a download says how far it is, how fast, how long still, and who sends it', () => {
  const lines: (readonly [string | undefined, number | undefined])[] = []
  const clock = { nowMs: 0 }
  const report = {
    note: () => {},
    warn: () => {},
    progress: (...said: (typeof lines)[number]) => void lines.push(said),
  }
  const listen = reportProgress(report, 'flowers', () => clock.nowMs)
  const download = { step: 'downloading', totalBytes: 4 * 2 ** 20, totalFiles: 4000 } as const
  listen({ ...download, writtenBytes: 0, doneFiles: 0 })
  clock.nowMs = 1000
  const origins = { storeBytes: 5, peerBytes: { 'gpu-02': 7, 'gpu-03': 0 } }
  listen({ ...download, writtenBytes: 2 ** 20, doneFiles: 1000, origins })
  assert.deepEqual(lines, [
    ['flowers: 0 B of 4 MiB, 0 B/s, 0/4,000 files, from the store', 0],
    ['flowers: 1 MiB of 4 MiB, 1 MiB/s, 3s left, 1,000/4,000 files, from gpu-02 and the store', 0.25],
  ])
})
