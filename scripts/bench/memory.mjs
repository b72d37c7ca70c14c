// Measures the memory system without a GPU: plan quality on the simulated device, planner time, mirror and central
// node. Writes docs/benchmarks/memory.md and the timeline beside it. --short: fewer repetitions.
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { Worker } from 'node:worker_threads'
import { CentralNode } from '../../dist/memory/params/central-node.js'
import { openParameterClient } from '../../dist/memory/params/client.js'
import { Mirror } from '../../dist/memory/params/mirror.js'
import { stepSgd } from '../../dist/memory/params/plan/momentum-sgd.js'
import { serveParameters } from '../../dist/memory/params/serve.js'
import { drawPlan } from '../../dist/memory/plan/explain.js'
import { offloadAll } from '../../dist/memory/plan/offload-all.js'
import { planMemory } from '../../dist/memory/plan/plan-memory.js'
import { simulatePlan } from '../../dist/memory/plan/simulate.js'
import { buildProfile } from '../../dist/memory/synthetic/build-profile.js'
import { gpt, resnet50, unet } from '../../dist/memory/synthetic/networks.js'
import { sumPersistentBytes } from '../../dist/memory/synthetic/persistent-bytes.js'

if (process.argv[2] === '--workers') {
  await work(process.argv[3], JSON.parse(process.argv[4]))
  process.exit(0)
}
const isShort = process.argv.includes('--short')
const DEVICE = {
  name: 'simulated',
  bytes: 80 * 2 ** 30,
  flopsPerSecond: 60e12,
  bytesPerSecond: 2e12,
  copyLatencyUs: 10,
}
const NETWORKS = {
  'ResNet-50, batch 64': resnet50(64),
  'GPT, 24 × 1024, batch 8 × 1024': gpt({
    batch: 8,
    context: 1024,
    width: 1024,
    blocks: 24,
    vocabulary: 50257,
  }),
  'U-Net, batch 8, 256²': unet(8, 256),
}
const SHARES = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]
const RATIOS = [0.5, 1, 1.5, 2, 3]
const lines = []
const say = (line = '') => {
  lines.push(line)
  process.stdout.write(`${line}\n`)
}
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

say('# Memory: measurements without a GPU')
say()
say(
  `Made by \`npm run bench:memory${isShort ? ' -- --short' : ''}\` on ${cpus().length} × ${cpus()[0].model}, Node ${process.version},`,
)
say(`load average ${loadavg()[0].toFixed(1)} at the start: the times below were taken on a shared machine.`)
say(
  'The simulated device runs the plan by itself; its profiles are arithmetic (60 TFLOP/s, 2 TB/s), not recordings.',
)
say(
  '**No GPU was at hand: the table of design 7 (peak, step time, against `save_on_cpu` and checkpointing) is open.**',
)
say()
planQuality()
timeline()
plannerTime()
await mirrorThroughput()
await serverThroughput()
mkdirSync('docs/benchmarks', { recursive: true })
writeFileSync('docs/benchmarks/memory.md', `${lines.join('\n')}\n`)

function planQuality() {
  say('## Plan quality on the simulated device')
  say()
  say(
    'Stall in percent of the step without stalls. x = time to copy all feature maps out, in forward passes. The budget is',
  )
  say(
    "a share of the activations' peak. In brackets: a bound that no plan can beat. *All, waiting* and *all, on demand* move",
  )
  say(
    'every map and fetch it when asked for (what tools without a plan do); they take no budget, their peak is given.',
  )
  say()
  let broken = 0
  let plans = 0
  for (const [name, nodes] of Object.entries(NETWORKS)) {
    say(`### ${name}`)
    say()
    say(
      `| x | ${SHARES.map((share) => `${100 * share} %`).join(' | ')} | all, waiting (peak) | all, on demand (peak) |`,
    )
    say(`|---|${SHARES.map(() => '---|').join('')}---|---|`)
    for (const copyRatio of RATIOS) {
      const profile = buildProfile(name, nodes, { ...DEVICE, copyRatio })
      const fixed = sumPersistentBytes(profile)
      const roomy = planMemory(profile, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' }).plan
      const natural = roomy.predicted.unplannedPeakBytes - fixed
      const cells = SHARES.map((share) => {
        const budgetBytes = Math.floor(fixed + share * natural)
        const outcome = planMemory(profile, { budgetBytes, profileHash: 'bench' })
        if (outcome.kind === 'infeasible')
          return `needs ${Math.ceil((100 * (outcome.leastBytes - fixed)) / natural)} %`
        plans++
        const run = simulatePlan(profile, outcome.plan, { capacityBytes: budgetBytes })
        broken += run.violations.length
        const { leastStallMs, baseMs } = outcome.plan.predicted
        return `${percent(run.stallUs / run.computeUs)} (${percent(leastStallMs / baseMs)})`
      })
      const blind = [true, false].map((isBlocking) => {
        const run = simulatePlan(profile, offloadAll(profile, isBlocking), {
          capacityBytes: Number.MAX_SAFE_INTEGER,
          isEager: true,
        })
        return `${percent(run.stallUs / run.computeUs)} (${Math.round((100 * (run.peakBytes - fixed)) / natural)} %)`
      })
      say(`| ${copyRatio} | ${cells.join(' | ')} | ${blind.join(' | ')} |`)
    }
    say()
  }
  say(`${plans} plans; promises broken on the simulated device: ${broken}.`)
  say()
}

function timeline() {
  const profile = buildProfile(
    'GPT',
    gpt({ batch: 8, context: 1024, width: 1024, blocks: 12, vocabulary: 50257 }),
    {
      ...DEVICE,
      copyRatio: 1,
    },
  )
  const fixed = sumPersistentBytes(profile)
  const roomy = planMemory(profile, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' }).plan
  const budgetBytes = Math.floor(fixed + 0.5 * (roomy.predicted.unplannedPeakBytes - fixed))
  const { plan } = planMemory(profile, { budgetBytes, profileHash: 'bench' })
  writeFileSync('docs/benchmarks/memory-timeline.svg', drawPlan(profile, plan))
  say('## One step of a GPT at half its activations')
  say()
  say('![memory over one step, planned and unplanned](memory-timeline.svg)')
  say()
}

function plannerTime() {
  say('## Planner time')
  say()
  say('| tensors | x | 90 % | 50 % | 30 % |')
  say('|---|---|---|---|---|')
  const shape = { batch: 8, context: 1024, width: 1024, vocabulary: 50257 }
  for (const blocks of [24, 263]) {
    for (const copyRatio of [0.5, 1, 2]) {
      const profile = buildProfile('GPT', gpt({ ...shape, blocks }), { ...DEVICE, copyRatio })
      const fixed = sumPersistentBytes(profile)
      const roomy = planMemory(profile, { budgetBytes: Number.MAX_SAFE_INTEGER, profileHash: 'bench' }).plan
      const natural = roomy.predicted.unplannedPeakBytes - fixed
      const cells = [0.9, 0.5, 0.3].map((share) => {
        const times = Array.from({ length: isShort ? 3 : 7 }, () => {
          const start = performance.now()
          planMemory(profile, { budgetBytes: Math.floor(fixed + share * natural), profileHash: 'bench' })
          return performance.now() - start
        })
        return `${median(times).toFixed(0)} ms`
      })
      say(`| ${profile.tensors.length} | ${copyRatio} | ${cells.join(' | ')} |`)
    }
  }
  say()
}

async function mirrorThroughput() {
  const elements = 16 * 2 ** 20
  const mirror = new Mirror(elements)
  const fresh = new Float32Array(elements).fill(1)
  const target = new Float32Array(elements)
  const gbs = async (run) => {
    const times = []
    for (let round = 0; round < (isShort ? 5 : 15); round++) {
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
     const { Mirror } = await import(${JSON.stringify(new URL('../../dist/memory/params/mirror.js', import.meta.url).href)})
     const mirror = new Mirror(1024, workerData)
     for (let version = 2; ; version++) await mirror.update(version, (half) => half.fill(version))`,
    { eval: true, workerData: small.buffer },
  )
  const sample = new Float32Array(1024)
  const reads = isShort ? 200_000 : 1_000_000
  let torn = 0
  const start = performance.now()
  for (let at = 0; at < reads; at++) {
    const seen = small.read(0, 1024, sample)
    if (sample[0] !== seen || sample[511] !== seen || sample[1023] !== seen) torn++
  }
  const seconds = (performance.now() - start) / 1e3
  await worker.terminate()
  const velocity = new Float32Array(elements)
  const sgd = { learningRate: 0.1, momentum: 0.9, weightDecay: 0 }
  const update = await gbs(() => stepSgd(target, velocity, fresh, sgd))
  say('## Mirror')
  say()
  say('| 64 MiB of parameters | GB/s |')
  say('|---|---|')
  say(`| pull into the inactive half | ${write} |`)
  say(`| read of the active half | ${read} |`)
  say(`| plain copy, for comparison | ${plain} |`)
  say(`| SGD with momentum at the centre (bytes of parameters) | ${update} |`)
  say()
  say(
    `${reads} reads of 4 KiB while another thread pulls without pause: ${torn} torn, ${(reads / seconds / 1e3).toFixed(0)} thousand/s.`,
  )
  say()
}

async function serverThroughput() {
  say('## Central node over loopback')
  say()
  say(
    'Steps of push, update and pull per second, and GB/s of gradients and parameters both ways. Server, and workers in',
  )
  say('another process.')
  say()
  say('| mode | workers | parameters | steps/s | GB/s |')
  say('|---|---|---|---|---|')
  const modes = [
    ['sync', { kind: 'sync' }],
    ['ssp:2', { kind: 'ssp', bound: 2 }],
    ['async', { kind: 'async' }],
  ]
  for (const [name, mode] of modes) {
    for (const [workers, mebibytes] of [
      [1, 1],
      [1, 16],
      [4, 1],
      [4, 16],
    ]) {
      const node = new CentralNode({
        mode,
        workers,
        sgd: { learningRate: 0.1, momentum: 0.9, weightDecay: 0 },
        isMean: true,
        lost: { kind: 'abort' },
        lostAfterMs: 60_000,
        checkpointEvery: 1e9,
      })
      const server = await serveParameters(node, { host: '127.0.0.1', port: 0 })
      const steps = Math.max(4, Math.round((isShort ? 48 : 320) / mebibytes / workers))
      const seconds = await runWorkers(server.url, { workers, mebibytes, steps, isSync: name === 'sync' })
      await server.close()
      const bytes = 2 * workers * steps * mebibytes * 2 ** 20
      say(
        `| ${name} | ${workers} | ${mebibytes} MiB | ${(steps / seconds).toFixed(1)} | ${(bytes / seconds / 1e9).toFixed(2)} |`,
      )
    }
  }
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

function percent(share) {
  return `${(100 * share).toFixed(1)} %`
}
