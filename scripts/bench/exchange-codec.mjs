// Prints what the WebAssembly codec does per second on one core: median of 15 runs over 4 Mi values.
import { openCodec } from '../../dist/half/codec.js'

const count = 4 * 1024 * 1024
const codec = openCodec(count * 16)
const [floats, others, halves, sums] = [4, 4, 2, 2].map((bytes) => codec.allocate(count * bytes))
new Float32Array(codec.memory, floats, count).forEach((_, index, view) => {
  view[index] = ((index * 2654435761) % 1000003) / 1000 - 500
})
const { kernels } = codec
const rows = [
  ['f32 → f16', 4, () => kernels.encodeHalf(floats, halves, count, 1)],
  ['f16 → f32', 2, () => kernels.decodeHalf(halves, others, count, 1)],
  ['f16 += f32', 2, () => kernels.addHalf(sums, floats, count, 1)],
  ['f32 += f16', 2, () => kernels.accumulateHalf(others, halves, count)],
  ['f32 → bf16', 4, () => kernels.encodeBrain(floats, halves, count, 1)],
  ['bf16 += f32', 2, () => kernels.addBrain(sums, floats, count, 1)],
  ['f32 += f32', 4, () => kernels.addFloat(others, floats, count, 1)],
  ['largest f16', 2, () => codec.maximumBits(halves, count, 2)],
]
for (const [name, bytes, run] of rows) {
  const times = Array.from({ length: 15 }, () => {
    const start = process.hrtime.bigint()
    run()
    return Number(process.hrtime.bigint() - start) / 1e9
  }).sort((a, b) => a - b)
  const gigabytes = (count * bytes) / times[7] / 1e9
  process.stdout.write(`${name.padEnd(14)}${gigabytes.toFixed(2).padStart(7)} GB/s of payload\n`)
}
