// Trains one small network twice: by P Node processes that exchange gradients through dsc, each on its share of
// every batch, and by one process on the whole batch. Prints both losses; fails if they are not the same.
//
//   node scripts/examples/exchange-data-parallel.mjs [--ranks 3] [--wire fp16|fp32] [--mode ring|direct] [--steps 200]
import { fork } from 'node:child_process'
import { parseArgs } from 'node:util'
import { joinExchange } from '../../dist/exchange/join-exchange.js'
import { openRendezvous } from '../../dist/exchange/rendezvous/open-rendezvous.js'

const { values: options } = parseArgs({
  options: {
    ranks: { type: 'string', default: '3' },
    wire: { type: 'string', default: 'fp16' },
    mode: { type: 'string', default: 'ring' },
    steps: { type: 'string', default: '200' },
    rank: { type: 'string' },
    port: { type: 'string' },
  },
})
const [ranks, steps] = [Number(options.ranks), Number(options.steps)]
const [inputs, hidden, classes] = [32, 64, 10]
const batch = 24 * ranks
const rate = 0.5

function createRandom(seed) {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 8) / 2 ** 24 - 0.5
  }
}

function createWeights() {
  const random = createRandom(7)
  const make = (count, spread) => Float32Array.from({ length: count }, () => random() * spread)
  return {
    'first.weight': make(hidden * inputs, 0.4),
    'first.bias': new Float32Array(hidden),
    'second.weight': make(classes * hidden, 0.4),
    'second.bias': new Float32Array(classes),
  }
}

/** Sample `index` of the task: the class is the direction, of ten fixed ones, that points most along the input. */
const directions = (() => {
  const random = createRandom(99)
  return Array.from({ length: classes }, () => Float64Array.from({ length: inputs }, random))
})()
function sample(index) {
  const random = createRandom(index * 7919 + 1)
  const input = Float64Array.from({ length: inputs }, random)
  const scores = directions.map((direction) =>
    direction.reduce((sum, value, at) => sum + value * input[at], 0),
  )
  return { input, label: scores.indexOf(Math.max(...scores)) }
}

/** Loss and gradients, averaged over samples `from` to `to`. */
function backward(weights, from, to) {
  const gradients = Object.fromEntries(
    Object.entries(weights).map(([name, values]) => [name, new Float32Array(values.length)]),
  )
  let loss = 0
  const share = 1 / (to - from)
  for (let index = from; index < to; index++) {
    const { input, label } = sample(index)
    const active = Float64Array.from({ length: hidden }, (_, row) => {
      let sum = weights['first.bias'][row]
      for (let at = 0; at < inputs; at++) sum += weights['first.weight'][row * inputs + at] * input[at]
      return Math.max(0, sum)
    })
    const scores = Float64Array.from({ length: classes }, (_, row) => {
      let sum = weights['second.bias'][row]
      for (let at = 0; at < hidden; at++) sum += weights['second.weight'][row * hidden + at] * active[at]
      return sum
    })
    const peak = Math.max(...scores)
    const total = scores.reduce((sum, score) => sum + Math.exp(score - peak), 0)
    loss += share * (Math.log(total) + peak - scores[label])
    const toActive = new Float64Array(hidden)
    for (let row = 0; row < classes; row++) {
      const slope = share * (Math.exp(scores[row] - peak) / total - (row === label ? 1 : 0))
      gradients['second.bias'][row] += slope
      for (let at = 0; at < hidden; at++) {
        gradients['second.weight'][row * hidden + at] += slope * active[at]
        toActive[at] += slope * weights['second.weight'][row * hidden + at]
      }
    }
    for (let row = 0; row < hidden; row++) {
      if (active[row] === 0) continue
      gradients['first.bias'][row] += toActive[row]
      for (let at = 0; at < inputs; at++)
        gradients['first.weight'][row * inputs + at] += toActive[row] * input[at]
    }
  }
  return { loss, gradients }
}

function update(weights, gradients) {
  for (const [name, values] of Object.entries(weights)) {
    for (let at = 0; at < values.length; at++) values[at] -= rate * gradients[name][at]
  }
}

/** Two buckets, in backward order: the last layer's gradients are ready first. */
const plan = {
  hash: 'example',
  ranks,
  wire: options.wire,
  buckets: [
    ['second.bias', 'second.weight'],
    ['first.bias', 'first.weight'],
  ].map((names) => ({
    tensors: names.map((name) => ({ name, elements: createWeights()[name].length })),
  })),
}

async function runRank(rank) {
  const session = await joinExchange({
    rendezvous: { host: '127.0.0.1', port: Number(options.port) },
    plan,
    rank,
    mode: options.mode,
  })
  const weights = createWeights()
  const share = batch / ranks
  for (let index = 0; index < steps; index++) {
    const from = index * batch + rank * share
    const { gradients } = backward(weights, from, from + share)
    const step = session.beginStep()
    for (const { tensors } of plan.buckets)
      for (const { name } of tensors) await step.add(name, gradients[name])
    await step.commit()
    update(weights, gradients)
  }
  const { loss } = backward(weights, 1_000_000, 1_000_500)
  await session.close()
  process.send(loss)
}

async function compare() {
  const rendezvous = await openRendezvous({ host: '127.0.0.1', port: 0, nowMs: Date.now })
  const words = process.argv.slice(2)
  const losses = await Promise.all(
    Array.from({ length: ranks }, (_, rank) => {
      const child = fork(process.argv[1], [
        ...words,
        '--rank',
        String(rank),
        '--port',
        String(rendezvous.port),
      ])
      return new Promise((resolve, reject) => {
        child.once('message', resolve)
        child.once('exit', (code) => reject(new Error(`rank ${rank} ended with ${code}`)))
      })
    }),
  )
  await rendezvous.close()
  const weights = createWeights()
  for (let index = 0; index < steps; index++) {
    update(weights, backward(weights, index * batch, (index + 1) * batch).gradients)
  }
  const { loss: single } = backward(weights, 1_000_000, 1_000_500)
  const { loss: untrained } = backward(createWeights(), 1_000_000, 1_000_500)
  const difference = Math.max(...losses.map((loss) => Math.abs(loss / single - 1)))
  const limit = options.wire === 'fp32' ? 1e-4 : 5e-3
  const isSame = difference <= limit && new Set(losses).size === 1 && single < untrained * 0.7
  process.stdout.write(
    `untrained            ${untrained.toFixed(6)}\n` +
      `one process          ${single.toFixed(6)}\n` +
      `${ranks} processes, ${options.wire}    ${losses[0].toFixed(6)}  (all ranks ${new Set(losses).size === 1 ? 'equal' : 'DIFFER'})\n` +
      `difference           ${(difference * 100).toFixed(5)} %, allowed ${limit * 100} %\n`,
  )
  process.exitCode = isSame ? 0 : 1
}

if (options.rank === undefined) await compare()
else await runRank(Number(options.rank))
