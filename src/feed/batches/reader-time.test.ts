import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countGpus, ReaderTime } from './reader-time.js'

test('a program tells what it waited for every ten seconds and after each pass; its feeds share its time', async () => {
  let nowMs = 1000
  const pass = async (ms: number) => {
    nowMs += ms
  }
  const heard: (readonly number[])[] = []
  const open = (feed: number) =>
    new ReaderTime({
      nowMs: () => nowMs,
      environment: {},
      tell: ({ elapsedMs, feedMs }) => void heard.push([feed, elapsedMs, feedMs]),
    })
  const [first, second] = [open(1), open(2)]
  first.tell(true) // nothing has been asked for
  await first.waitFor(() => pass(300))
  await pass(9000)
  first.tell(false)
  await assert.rejects(
    first.waitFor(() => pass(700).then(() => Promise.reject(new Error('gone')))),
    /gone/,
  )
  first.tell(false)
  await second.waitFor(() => pass(50))
  await pass(200)
  second.tell(true)
  first.tell(true)
  assert.deepEqual(heard, [
    [1, 10_000, 1000],
    [2, 250, 50],
    [1, 0, 0],
  ])
})

for (const { environment, gpus } of [
  { environment: {}, gpus: 1 },
  { environment: { CUDA_VISIBLE_DEVICES: '0,1,2,3', LOCAL_WORLD_SIZE: '2' }, gpus: 2 },
  { environment: { CUDA_VISIBLE_DEVICES: '-1', SLURM_GPUS_ON_NODE: '8' }, gpus: 1 },
  { environment: { SLURM_GPUS_ON_NODE: '8', SLURM_NTASKS_PER_NODE: '4' }, gpus: 2 },
  { environment: { SLURM_GPUS_ON_NODE: 'gpu:8' }, gpus: 1 },
])
  test(`${gpus} GPUs wait with a process in ${JSON.stringify(environment)}`, () => {
    assert.equal(countGpus(environment), gpus)
  })
