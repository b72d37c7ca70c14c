import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findFreePort } from '../../testing/free-port.js'
import { trainAlone } from '../../testing/toy-model.js'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const WORKER = fileURLToPath(new URL('../../testing/parameter-worker.js', import.meta.url))
const WORKERS = 4
const STEPS = 60
/** Each of the 240 pushes is written to the disk, which may be slow. */
const LIMIT_MS = 280_000

interface WorkerEvent {
  readonly rank: number
  readonly kind: 'push' | 'again' | 'version' | 'done'
  readonly version?: number
  readonly state?: string
  readonly first?: string
  readonly values?: number[]
}

test('random kills of workers and server change nothing of a sync job', { timeout: LIMIT_MS }, async (t) => {
  const { finals } = await runWithKills(t, { mode: 'sync', most: 8 })
  const expected = trainAlone(WORKERS, STEPS, true)
  for (const values of finals.values()) assert.deepEqual(Float32Array.from(values), expected)
})

for (const mode of ['ssp:2', 'async']) {
  test(`random kills of workers and server lose and double no push of an ${mode} job`, {
    timeout: LIMIT_MS,
  }, async (t) => {
    const { url } = await runWithKills(t, { mode, most: 5 })
    const status = await readStatus(url, t.signal)
    assert.deepEqual(status.lastSteps, new Array<number>(WORKERS).fill(STEPS - 1))
    assert.equal(status.version, WORKERS * STEPS, 'every push of every rank is one version, once')
  })
}

/** Runs four workers to their last step while workers and server are killed at random; checks what they saw. */
async function runWithKills(
  t: TestContext,
  { mode, most }: { mode: string; most: number },
): Promise<{ finals: Map<number, number[]>; url: string }> {
  const seed = Date.now() & 0x7fffffff
  process.stdout.write(`# seed ${seed}\n`)
  const random = mulberry32(seed)
  const folder = await mkdtemp(join(tmpdir(), 'dsc-kill-'))
  const port = await findFreePort()
  const url = `http://127.0.0.1:${port}`
  const children = new Set<ChildProcess>()
  let isOver = false
  t.after(async () => {
    isOver = true
    // A server that has not exited yet may still be writing its checkpoint into the folder.
    await Promise.all([...children].map((child) => killAndWait(child)))
    await rm(folder, { recursive: true })
  })
  const start = (args: readonly string[]) => {
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    children.add(child)
    child.once('close', () => children.delete(child))
    return child
  }
  const serve = () => {
    const flags = `--mode ${mode} --workers ${WORKERS} --lr 0.05 --momentum 0.9 --checkpoint-every 1`.split(
      ' ',
    )
    return start([DSC, 'params', 'serve', ...flags, '--listen', `127.0.0.1:${port}`, '--checkpoint', folder])
  }
  let server = serve()
  const events: WorkerEvent[] = []
  const finals = new Map<number, number[]>()
  const workers = new Map<number, ChildProcess>()
  let kills = 0
  const work = (rank: number) => {
    const child = start([WORKER, url, String(rank), String(STEPS), mode === 'sync' ? 'sync' : 'free'])
    workers.set(rank, child)
    let text = ''
    child.stdout!.on('data', (chunk) => {
      text += chunk
      const lines = text.split('\n')
      text = lines.pop()!
      for (const line of lines) {
        const event = JSON.parse(line) as WorkerEvent
        events.push(event)
        if (event.kind === 'done') finals.set(rank, event.values!)
      }
    })
    child.once('close', () => {
      if (!finals.has(rank) && !isOver && !t.signal.aborted) work(rank)
    })
  }
  for (let rank = 0; rank < WORKERS; rank++) work(rank)
  while (finals.size < WORKERS && kills < most && !t.signal.aborted) {
    await pause(250 + 500 * random())
    if (random() < 0.3) {
      await killAndWait(server)
      server = serve()
    } else workers.get(Math.floor(random() * WORKERS))!.kill('SIGKILL')
    kills++
  }
  while (finals.size < WORKERS && !t.signal.aborted) await pause(50)
  process.stdout.write(`# ${kills} kills, ${events.length} events\n`)
  for (let rank = 0; rank < WORKERS; rank++) {
    const versions = events.filter((event) => event.rank === rank && event.kind === 'version')
    versions.reduce((last, { version }) => {
      assert.ok(version! >= last, `rank ${rank} saw version ${version} after ${last}`)
      return version!
    }, 0)
  }
  const again = events.filter(({ kind }) => kind === 'again')
  // A push refused as too far ahead of the slowest rank is applied once that rank has moved on.
  const known = again.filter(({ first }) => first !== 'refused')
  assert.ok(known.length > 0)
  assert.deepEqual(
    known.filter(({ state }) => state !== 'duplicate' && state !== 'refused'),
    [],
    'a push that was applied is not applied again',
  )
  return { finals, url }
}

/** The server may have been killed last and still be starting. */
async function readStatus(
  url: string,
  signal: AbortSignal,
): Promise<{ version: number; lastSteps: number[] }> {
  for (;;) {
    signal.throwIfAborted()
    const response = await fetch(`${url}/v1/status`).catch(() => undefined)
    if (response?.ok) return (await response.json()) as { version: number; lastSteps: number[] }
    await pause(50)
  }
}

async function killAndWait(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close')
  child.kill('SIGKILL')
  await closed
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((settle) => setTimeout(settle, milliseconds))
}

function mulberry32(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
