import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { FreshAnswers } from './fresh-answers.js'

/** Answers to questions, each of which says how often it was asked before; `fail` makes the next one fail. */
function openAnswers(freshMs: number) {
  const answers = new FreshAnswers<number>({ freshMs, most: 2 })
  let [asked, isFailing] = [0, false]
  const get = (question: string) =>
    answers.get(question, async () => {
      if (isFailing) throw new Error('away')
      return asked++
    })
  const fail = (fails: boolean) => {
    isFailing = fails
  }
  return { get, fail }
}

test('a question is asked once while its answer is fresh, also by those who wait for it', async () => {
  const { get } = openAnswers(60_000)
  assert.deepEqual(await Promise.all([get('a'), get('a'), get('b')]), [0, 0, 1])
  assert.equal(await get('a'), 0)
})

test('an answer that is old is asked for again', async () => {
  const { get } = openAnswers(1)
  assert.equal(await get('a'), 0)
  await sleep(20)
  assert.equal(await get('a'), 1)
})

test('a failure is forgotten at once', async () => {
  const { get, fail } = openAnswers(60_000)
  fail(true)
  await assert.rejects(get('a'), /away/)
  fail(false)
  assert.equal(await get('a'), 0)
})

test('only the newest answers are kept', async () => {
  const { get } = openAnswers(60_000)
  for (const question of ['a', 'b', 'c']) await get(question)
  assert.deepEqual([await get('c'), await get('b'), await get('a')], [2, 1, 3])
})
