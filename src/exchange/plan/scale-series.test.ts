import assert from 'node:assert/strict'
import { test } from 'node:test'
import { advanceScale, FIRST_SCALE, planAveraging, planWire, type ScaleState } from './scale.js'

/** The values of one exchange of a bucket, as floats, by rank and part. */
type Gradients = readonly (readonly Float32Array[])[]

const RANKS = 3
const PARTS = 2
const VALUES = 3
const EXCHANGES = 25
const SERIES = 10_000
const BUCKET = { elements: 5000, tensors: PARTS }
/** Each rank rounds what it sends once, and their sum is rounded once. */
const RELATIVE_BOUND = 2 ** -10

test('after any series of magnitudes a bucket is within its bound, or in fp32, one exchange after any jump', (context) => {
  const seed = Math.floor(Math.random() * 2 ** 31)
  context.diagnostic(`seed ${seed}`)
  const random = randomOf(seed)
  for (let series = 0; series < SERIES; series++) {
    let state = FIRST_SCALE
    let wasImprecise = false
    const sizes = Array.from({ length: PARTS }, () => drawSize(random))
    for (let exchange = 0; exchange < EXCHANGES; exchange++) {
      jump(sizes, random)
      const gradients = drawGradients(sizes, random)
      const done = exchangeOnce(state, gradients)
      const isImprecise = done.error > RELATIVE_BOUND
      const place = `seed ${seed}, series ${series}, exchange ${exchange}: relative error ${done.error}`
      assert.ok(!isImprecise || !wasImprecise, `${place}, as in the exchange before`)
      assert.ok(!isImprecise || done.hasFallen, `${place}, of a part that has not fallen`)
      state = done.state
      wasImprecise = isImprecise
    }
  }
})

test('noise is no jump: nothing is repeated, and fp16 carries all but the first exchange', () => {
  const random = randomOf(1)
  for (let series = 0; series < 200; series++) {
    let state = FIRST_SCALE
    const level = 2 ** (random() * 120)
    const wires: string[] = []
    for (let exchange = 0; exchange < 100; exchange++) {
      // Each draw is within a factor of 5 of the level, and the level itself falls as training goes on.
      const size = Math.fround(level * 0.97 ** exchange * 5 ** (2 * random()))
      const done = exchangeOnce(state, drawGradients([size, size / 1e9], random))
      state = done.state
      wires.push(done.wire)
    }
    assert.deepEqual([...new Set(wires.slice(1))], ['fp16'], `series ${series}: ${wires.join(' ')}`)
  }
})

/** Repeatable numbers in [−0.5, 0.5). */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    return (state >>> 8) / 2 ** 24 - 0.5
  }
}

/** Any magnitude of floats, or 0. */
function drawSize(random: () => number): number {
  return random() > 0.45 ? 0 : 2 ** (random() * 250)
}

/** Now and then another magnitude: any, or one that begins to explode or to vanish, or a brief spike. */
function jump(sizes: number[], random: () => number): void {
  for (const [part, size] of sizes.entries()) {
    const drawn = random() + 0.5
    if (drawn < 0.08) sizes[part] = drawSize(random)
    else if (drawn < 0.25) sizes[part] = Math.min(2 ** 125, size * 2 ** (random() * 40))
    if (sizes[part]! < 2 ** -125) sizes[part] = 0 // values below the normal floats do not count
  }
}

function drawGradients(sizes: readonly number[], random: () => number): Gradients {
  return Array.from({ length: RANKS }, () =>
    sizes.map((size) => Float32Array.from({ length: VALUES }, () => size * 2 * random())),
  )
}

/** Models an engine's exchange of a bucket: sums of halves in fp32, rounded once; fp32 if that is not finite. */
function exchangeOnce(state: ScaleState, gradients: Gradients) {
  const exact = meanOf(gradients, (value) => value)
  const { wireType, exponents } = planWire(state, BUCKET)
  if (wireType === 'fp32') {
    const outcome = { kind: 'clean', wireType, amaxes: exact.map(amaxOf) } as const
    return { state: advanceScale(state, outcome), wire: 'fp32', error: 0, hasFallen: false }
  }
  const { shift, factor } = planAveraging(RANKS)
  const found = exact.map((_, part) => {
    const scale = 2 ** (exponents[part]! + shift)
    return Float64Array.from({ length: VALUES }, (_value, at) => {
      let sum = 0
      for (const rank of gradients) sum += Math.f16round(Math.fround(rank[part]![at]! * scale))
      return Math.f16round(sum) * 2 ** -exponents[part]! * factor
    })
  })
  if (!found.every((part) => part.every(Number.isFinite))) {
    const outcome = { kind: 'redone', amaxes: exact.map(amaxOf) } as const
    return { state: advanceScale(state, outcome), wire: 'redone', error: 0, hasFallen: false }
  }
  const magnitudes = meanOf(gradients, Math.abs)
  const errors = exact.map((part, at) => {
    const difference = Math.hypot(...part.map((value, index) => found[at]![index]! - value))
    return difference === 0 ? 0 : difference / Math.hypot(...magnitudes[at]!)
  })
  const hasFallen = exact.some((part, at) => amaxOf(part) * 2 ** exponents[at]! < 1)
  const outcome = { kind: 'clean', wireType, amaxes: found.map(amaxOf) } as const
  return { state: advanceScale(state, outcome), wire: 'fp16', error: Math.max(...errors), hasFallen }
}

function meanOf(gradients: Gradients, see: (value: number) => number): Float64Array[] {
  return gradients[0]!.map((first, part) =>
    Float64Array.from(
      first,
      (_, at) => gradients.reduce((sum, rank) => sum + see(rank[part]![at]!), 0) / RANKS,
    ),
  )
}

function amaxOf(values: Float64Array): number {
  return values.reduce((largest, value) => Math.max(largest, Math.abs(value)), 0)
}
