import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DscError } from '../failure/dsc-error.js'
import { JobThread, leastBusy, spreadJobs } from './job-threads.js'

/** A thread of this code; `run` is the body of a function of a job. */
function threadOf(run: string): URL {
  const module = JSON.stringify(new URL('./job-threads.js', import.meta.url))
  const failure = JSON.stringify(new URL('../failure/dsc-error.js', import.meta.url))
  return new URL(
    `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads'
    import { serveJobs } from ${module}
    import { DscError } from ${failure}
    let told = 'nothing'
    serveJobs(parentPort, (job) => { ${run} }, { onWord(word) { told = word } })`)}`,
  )
}

test('a thread answers jobs and hears words in the order in which they were given', async (t) => {
  const thread = new JobThread<string, string, string>(threadOf('return job + told'))
  t.after(() => thread.stop())
  const first = thread.run('a ')
  thread.tell('word')
  assert.equal(thread.jobCount, 1)
  assert.deepEqual(await Promise.all([first, thread.run('b ')]), ['a nothing', 'b word'])
  assert.equal(thread.jobCount, 0)
})

test('a failure of a job keeps its class, code and hint, and the thread goes on', async (t) => {
  const thread = new JobThread<string, string>(
    threadOf(
      `if (job === 'bad') throw new DscError('DISK_FULL', 'no room', { hint: 'free some' }); return job`,
    ),
  )
  t.after(() => thread.stop())
  const failed = (error: unknown) =>
    error instanceof DscError && error.code === 'DISK_FULL' && error.hint === 'free some'
  await assert.rejects(thread.run('bad'), failed)
  assert.equal(await thread.run('good'), 'good')
})

test('jobs of a thread that ends fail, those that come later included', async () => {
  const dead = new JobThread<string, string>(threadOf('process.exit(1)'))
  await assert.rejects(dead.run('a'), /ended early/)
  await assert.rejects(dead.run('b'), /ended early/)
  const stopped = new JobThread<string, string>(threadOf('return new Promise(() => {})'))
  const failed = assert.rejects(stopped.run('a'), /enough/)
  await stopped.stop(new Error('enough'))
  await failed
})

test('the least busy thread is the first of those with the fewest jobs', () => {
  const threads = [{ jobCount: 2 }, { jobCount: 1 }, { jobCount: 1 }]
  assert.equal(leastBusy(threads), threads[1])
})

test('spread jobs run one per thread at a time, and give their results by place', async () => {
  const results: string[] = []
  let running = 0
  let most = 0
  let threads = 0
  const start = () => {
    threads += 1
    return {
      async run(job: string) {
        most = Math.max(most, ++running)
        await Promise.resolve()
        running -= 1
        return job.toUpperCase()
      },
      stop: async () => void threads--,
    }
  }
  await spreadJobs(['a', 'b', 'c'], {
    threads: 2,
    start,
    onResult(place, result) {
      results[place] = result
    },
  })
  assert.deepEqual({ results, most, threads }, { results: ['A', 'B', 'C'], most: 2, threads: 0 })
})

test('the first failure by place counts, and no job is started after one', async () => {
  const begun: number[] = []
  const start = () => ({
    async run(job: number) {
      begun.push(job)
      for (let turn = 0; turn < 3 - job; turn++) await Promise.resolve() // the second fails first
      throw new Error(`job ${job}`)
    },
    stop: async () => {},
  })
  await assert.rejects(spreadJobs([0, 1, 2], { threads: 2, start, onResult() {} }), /job 0/)
  assert.deepEqual(begun, [0, 1])
})
