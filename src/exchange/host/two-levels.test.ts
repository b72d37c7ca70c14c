import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countDescriptors } from '../../testing/open-descriptors.js'
import { makeGradients, meanOf, planOf, runStep, withHosts } from '../local-sessions.test.fixture.js'
import type { PlanFile } from '../plan-files.js'

const SHAPES = [[7, 3000], [1], [5000, 3, 800]]
/** More segments than a rank's memory has slots. */
const LARGE = [[7, 3000], [600_000]]
const twoLevels = (plan: PlanFile): PlanFile => ({ ...plan, levels: 2 })

/** The mean as two levels define it: each host's sum in rank order, in fp32 and scaled beforehand, then both hosts'. */
function exactMean(values: readonly Float32Array[], hosts: readonly string[]): Float32Array {
  const bits = Math.ceil(Math.log2(values.length))
  const [scale, factor] = [2 ** -bits, Math.fround(2 ** bits / values.length)]
  const sums = [...new Set(hosts)].map((host) => {
    const [first, ...others] = values.filter((_, rank) => hosts[rank] === host)
    const sum = first!.map((value) => value * scale)
    for (const other of others) for (const [at, value] of other.entries()) sum[at]! += value * scale
    return sum
  })
  return sums[0]!.map((value, at) => Math.fround(sums.length === 1 ? value : value + sums[1]![at]!) * factor)
}

function assertSameBits(found: Float32Array, expected: Float32Array, what: string): void {
  const [a, b] = [found, expected].map(({ buffer, byteOffset, byteLength }) =>
    Buffer.from(buffer, byteOffset, byteLength),
  )
  if (a!.equals(b!)) return
  const at = found.findIndex((value, index) => value !== expected[index])
  assert.fail(`${what}: ${found[at]} at ${at}, not ${expected[at]}`)
}

for (const hosts of ['aabb', 'abab', 'abb', 'aaa', 'aaaabbbb'])
  for (const mode of ['ring', 'direct'] as const) {
    test(`${mode}, ranks on hosts ${hosts}: fp32 gives the defined bits, halves the same on all ranks`, async () => {
      for (const wire of ['fp32', 'fp16'] as const) {
        const shapes = hosts === 'abb' && mode === 'ring' ? LARGE : SHAPES
        const plan = twoLevels(planOf(hosts.length, wire, shapes))
        await withHosts([...hosts], { plan, mode }, async (sessions) => {
          for (const seed of [1, 2, 3]) {
            const gradients = makeGradients(plan, seed, 1e-6)
            const drawn = gradients.map((rank) => structuredClone(rank))
            const reports = await runStep(sessions, gradients)
            for (const report of reports) assert.deepEqual(report, reports[0])
            const isHalf = reports[0]!.buckets.some(({ wireType }) => wireType === 'fp16')
            assert.equal(isHalf, wire === 'fp16' && seed > 1 && new Set(hosts).size > 1)
            for (const [name, found] of gradients[0]!) {
              for (const rank of gradients) assertSameBits(rank.get(name)!, found, `${name} of another rank`)
              const exact = exactMean(
                drawn.map((rank) => rank.get(name)!),
                [...hosts],
              )
              if (!isHalf) assertSameBits(found, exact, name)
              else {
                const worst = found.reduce(
                  (most, value, at) => Math.max(most, Math.abs(value - exact[at]!)),
                  0,
                )
                assert.ok(worst <= 0.5e-6 * 2 ** -10, `${name}: ${worst}`)
              }
            }
            assert.deepEqual(sessions[0]!.scales(), sessions.at(-1)!.scales())
          }
        })
      }
    })
  }

test('two levels: 8 ranks on 2 hosts keep layers of 1e-9 to 1e-3 within 4e-4 of their means', async () => {
  const layers = [1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3]
  const plan = twoLevels(
    planOf(
      8,
      'fp16',
      layers.map(() => [4096]),
    ),
  )
  await withHosts([...'aaaabbbb'], { plan, mode: 'ring' }, async (sessions) => {
    for (const seed of [1, 2, 3, 4]) {
      const gradients = makeGradients(plan, seed, 2)
      for (const rank of gradients)
        for (const [name, values] of rank)
          for (let at = 0; at < values.length; at++) values[at]! *= layers[Number(name.split('.')[0])]!
      const means = new Map([...gradients[0]!.keys()].map((name) => [name, meanOf(gradients, name)]))
      await runStep(sessions, gradients)
      for (const [name, mean] of means) {
        const found = gradients[5]!.get(name)!
        const error = Math.hypot(...mean.map((value, at) => found[at]! - value)) / Math.hypot(...mean)
        assert.ok(error <= 4e-4, `${name}: relative error ${error}`)
      }
    }
  })
})

test('two levels: what overflows as halves is repeated in fp32 on all ranks, and sums do not overflow', async () => {
  const plan = twoLevels(planOf(4, 'fp16', [[1000, 200_000], [5000]]))
  const hosts = [...'aabb']
  await withHosts(hosts, { plan, mode: 'ring' }, async (sessions) => {
    await runStep(sessions, makeGradients(plan, 1, 1))
    const spiked = makeGradients(plan, 2, 1)
    spiked[3]!.get('0.1')!.fill(3e38)
    const drawn = spiked.map((rank) => rank.get('0.1')!.slice())
    const [report] = await runStep(sessions, spiked)
    assert.deepEqual(
      report!.buckets.map(({ outcome }) => outcome),
      ['redone', 'clean'],
    )
    for (const rank of spiked) assertSameBits(rank.get('0.1')!, exactMean(drawn, hosts), 'repeated')
    const largest = makeGradients(plan, 3, 0)
    for (const rank of largest) rank.get('0.0')!.fill(3e38)
    await runStep(sessions, largest)
    assert.equal(largest[1]!.get('0.0')![9], Math.fround(3e38))
  })
})

test('memory that ranks shared is gone when their sessions are closed', async () => {
  const shared = () => countDescriptors('/dev/shm/#')
  const plan = twoLevels(planOf(4, 'fp16', [[100]]))
  await withHosts([...'aabb'], { plan, mode: 'ring' }, async (sessions) => {
    await runStep(sessions, makeGradients(plan, 1, 1))
    assert.equal(shared(), 8) // each its own and its neighbour's
  })
  assert.equal(shared(), 0)
})
