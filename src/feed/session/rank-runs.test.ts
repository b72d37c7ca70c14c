import assert from 'node:assert/strict'
import { test } from 'node:test'
import { placeSession, type Run, type RunSession } from './rank-runs.js'

const session = (isReading = true): RunSession => ({ pid: 7, isReading })
const runOf = (fields: Partial<Run>): Run => ({
  name: undefined,
  epoch: 4,
  step: 0,
  workers: 2,
  earlier: [],
  sessions: new Map(),
  ...fields,
})
const start = (fields: object = {}) => ({ epoch: undefined, step: 0, run: undefined, ...fields })

for (const { name, current, asked, worker, workers, epoch, isNew } of [
  {
    name: 'the first worker opens epoch 0',
    current: undefined,
    asked: start(),
    worker: 0,
    workers: 2,
    epoch: 0,
    isNew: true,
  },
  {
    name: 'a worker whose place is free joins the open pass',
    current: runOf({ sessions: new Map([[0, session()]]) }),
    asked: start(),
    worker: 1,
    workers: 2,
    epoch: 4,
    isNew: false,
  },
  {
    name: 'a worker whose place has read to the end opens the next epoch',
    current: runOf({ sessions: new Map([[0, session(false)]]) }),
    asked: start(),
    worker: 0,
    workers: 2,
    epoch: 5,
    isNew: true,
  },
  {
    name: 'another number of workers is another pass',
    current: runOf({ sessions: new Map([[0, session()]]) }),
    asked: start(),
    worker: 1,
    workers: 3,
    epoch: 5,
    isNew: true,
  },
  {
    name: 'a named pass goes where it says, even back',
    current: runOf({ name: 'a', sessions: new Map([[0, session()]]) }),
    asked: start({ run: 'b', epoch: 1, step: 9 }),
    worker: 0,
    workers: 2,
    epoch: 1,
    isNew: true,
  },
  {
    name: 'workers of one named pass share it',
    current: runOf({ name: 'a', sessions: new Map([[0, session()]]) }),
    asked: start({ run: 'a', epoch: 4 }),
    worker: 1,
    workers: 2,
    epoch: 4,
    isNew: false,
  },
]) {
  test(`placing a client: ${name}`, () => {
    const placed = placeSession(current, asked, { worker, workers, session: session() })!
    assert.deepEqual([placed.run.epoch, placed.isNew], [epoch, isNew])
    assert.ok(placed.run.sessions.has(worker))
  })
}

test('a worker that comes late for a named pass does not take the rank back to it', () => {
  const place = (current: Run | undefined, run: string, worker: number) =>
    placeSession(current, start({ run, epoch: 0 }), { worker, workers: 2, session: session(false) })
  let { run } = place(undefined, '0', 0)!
  for (let name = 1; name < 30; name++) {
    run = place(run, `${name}`, 0)!.run
    assert.equal(place(run, `${name - 1}`, 1), undefined)
  }
  assert.ok(run.earlier.length < 20)
  assert.equal(place(run, '29', 1)!.run, run)
  assert.equal(place(run, '29', 0)!.isNew, true, 'a worker that is connected anew goes on where it was')
})

test('a client whose place another process is reading from is refused, with its process id', () => {
  const current = runOf({ sessions: new Map([[1, session()]]) })
  assert.throws(() => placeSession(current, start(), { worker: 1, workers: 2, session: session() }), {
    code: 'FEED_PROTOCOL',
    message: /process 7/,
  })
})
