// Measures the mirror and the central node over loopback.
import { spawn } from 'node:child_process'
import { Worker } from 'node:worker_threads'
import { CentralNode } from '../../../dist/memory/params/central-node.js'
import { Mirror } from '../../../dist/memory/params/mirror.js'
import { openParameterClient } from '../../../dist/memory/params/parameter-client.js'
import { stepSgd } from '../../../dist/memory/params/plan/step-sgd.js'
import { serveParameters } from '../../../dist/memory/params/serve-parameters.js'
import { median, table } from '../harness/tables.mjs'

const SGD = { kind: 'sgd', learningRate: 0.1, momentum: 0.9, isNesterov: false, weightDecay: 0 }

if (process.argv[2] === '--workers') {
  await work(process.argv[3], JSON.parse(process.argv[4]))
  process.exit(0)
}

/** Bandwidth of the mirror, and reads of it while another thread writes. */
export async function mirrorThroughput({ isShort }) {
  const elements = (isShort ? 1 : 16) * 2 ** 20
  const mirror = new Mirror(elements)
  const fresh = new Float32Array(elements).fill(1)
  const target = new Float32Array(elements)
  const gbs = async (run) => {
    const times = []
    for (let round = 0; round < (isShort ? 2 : 15); round++) {
      const start = performance.now()
      await run()
      times.push(performance.now() - start)
    }
    return ((4 * elements) / median(times) / 1e6).toFixed(2)
  }
  let version = 0
  const write = await gbs(() => mirror.update(++version, (half) => half.set(fresh)))
  const read = await gbs(() => mirror.read(0, elements, target))
  const plain = await gbs(() => target.set(fresh))
  const small = new Mirror(1024)
  await small.update(1, (half) => half.fill(1))
  const worker = new Worker(
    `import { workerData } from 'node:worker_threads'
     const { Mirror } = await import(${JSON.stringify(new URL('../../../dist/memory/params/mirror.js', import.meta.url).href)})
     const mirror = new Mirror(1024, workerData)
     for (let version = 2; ; version++) await mirror.update(version, (half) => half.fill(version))`,
    { eval: true, workerData: small.buffer },
  )
  const sample = new Float32Array(1024)
  const reads = isShort ? 10_000 : 1_000_000
  let torn = 0
  const start = performance.now()
  for (let at = 0; at < reads; at++) {
    const seen = small.read(0, 1024, sample)
    if (sample[0] !== seen || sample[511] !== seen || sample[1023] !== seen) torn++
  }
  const seconds = (performance.now() - start) / 1e3
  await worker.terminate()
  const velocity = new Float32Array(elements)
  const range = { settings: SGD, offset: 0, length: elements }
  const update = await gbs(() => stepSgd({ parameters: target, moments: [velocity] }, fresh, range))
  const rows = [
    ['pull into the inactive half', write],
    ['read of the active half', read],
    ['plain copy, for comparison', plain],
    ['SGD with momentum at the centre (bytes of parameters)', update],
  ]
  const rate = `${(reads / seconds / 1e3).toFixed(0)} thousand/s`
  const whole = `${reads} reads of 4 KiB while another thread pulls without pause: ${torn} torn, ${rate}.`
  return [...table([`${(4 * elements) / 2 ** 20} MiB of parameters`, 'GB/s'], rows), whole]
}

/** Steps per second of workers in another process with a central node. */
export async function serverThroughput({ isShort }) {
  const modes = { sync: { kind: 'sync' }, 'ssp:2': { kind: 'ssp', bound: 2 }, async: { kind: 'async' } }
  const sizes = isShort
    ? [[2, 1]]
    : [1, 4].flatMap((workers) => [1, 16].map((mebibytes) => [workers, mebibytes]))
  const how = {
    optimizer: SGD,
    isMean: true,
    lost: { kind: 'abort' },
    lostAfterMs: 60_000,
    checkpointEvery: 1e9,
  }
  const rows = []
  for (const [name, mode] of Object.entries(modes))
    for (const [workers, mebibytes] of sizes) {
      const server = await serveParameters(new CentralNode({ mode, workers, ...how }), {
        host: '127.0.0.1',
        port: 0,
      })
      const steps = Math.max(4, Math.round((isShort ? 8 : 320) / mebibytes / workers))
      const seconds = await runWorkers(server.url, { workers, mebibytes, steps, isSync: name === 'sync' })
      await server.close()
      const gigabytes = (2 * workers * steps * mebibytes * 2 ** 20) / 1e9
      const speeds = [(steps / seconds).toFixed(1), (gigabytes / seconds).toFixed(2)]
      rows.push([name, workers, `${mebibytes} MiB`, ...speeds])
    }
  return table(['mode', 'workers', 'parameters', 'steps/s', 'GB/s'], rows)
}

function runWorkers(url, job) {
  const child = spawn(process.execPath, [import.meta.filename, '--workers', url, JSON.stringify(job)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return new Promise((settle, fail) => {
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
    })
    child.once('close', (code) => (code === 0 ? settle(Number(text)) : fail(new Error(`workers: ${code}`))))
  })
}

async function work(url, { workers, mebibytes, steps, isSync }) {
  const length = mebibytes * 2 ** 18
  const slots = [{ name: 'weight', shape: [length], layer: 0 }]
  const gradient = new Float32Array(length).fill(1e-6)
  const clients = await Promise.all(
    Array.from({ length: workers }, async (_, rank) => {
      const client = await openParameterClient({ url, rank, slots, values: new Float32Array(length) })
      await client.pull()
      return client
    }),
  )
  const start = performance.now()
  await Promise.all(
    clients.map(async (client) => {
      for (let step = 0; step < steps; step++) {
        let version = client.mirror.version
        while ((await client.push(gradient, step)).state === 'refused') version = await client.pull({ step })
        version = await client.pull(isSync ? { atLeast: version + 1 } : { step: step + 1 })
      }
    }),
  )
  process.stdout.write(String((performance.now() - start) / 1e3))
}
