import assert from 'node:assert/strict'
import { test } from 'node:test'
import { reportProgress } from './report-progress.js'

test('a source that does not answer is told of once, however often it is asked again', () => {
  const notes: string[] = []
  const report = { note: (sentence: string) => void notes.push(sentence), progress: () => {} }
  const listen = reportProgress(report, 'flowers', () => 0)
  for (const attemptsLeft of [2, 1])
    listen({ step: 'retrying', problem: 'no connection to http://s3.example', attemptsLeft })
  assert.deepEqual(notes, ['flowers: no connection to http://s3.example; trying again, up to 2 more times'])
})
