// What the WebAssembly codec of half precision does per second on one core: median of --rounds runs.
import { openCodec } from '../../dist/half/codec.js'
import { median, table } from './harness/tables.mjs'

export const benchmark = {
  options: { rounds: 15, values: 4 * 1024 * 1024 },
  smoke: { rounds: 1, values: 1024 },
  run(bench) {
    const { rounds, values } = bench.given
    const codec = openCodec(values * 16)
    const [floats, others, halves, sums] = [4, 4, 2, 2].map((bytes) => codec.allocate(values * bytes))
    new Float32Array(codec.memory, floats, values).forEach((_, index, view) => {
      view[index] = ((index * 2654435761) % 1000003) / 1000 - 500
    })
    const { kernels } = codec
    const calls = [
      ['f32 → f16', 4, () => kernels.encodeHalf(floats, halves, values, 1)],
      ['f16 → f32', 2, () => kernels.decodeHalf(halves, others, values, 1)],
      ['f16 += f32', 2, () => kernels.addHalf(sums, floats, values, 1)],
      ['f32 += f16', 2, () => kernels.accumulateHalf(others, halves, values)],
      ['f32 → bf16', 4, () => kernels.encodeBrain(floats, halves, values, 1)],
      ['bf16 += f32', 2, () => kernels.addBrain(sums, floats, values, 1)],
      ['f32 += f32', 4, () => kernels.addFloat(others, floats, values, 1)],
      ['largest f16', 2, () => codec.maximumBits(halves, values, 2)],
    ]
    const rows = calls.map(([name, bytes, run]) => {
      const seconds = Array.from({ length: rounds }, () => {
        const startMs = performance.now()
        run()
        return (performance.now() - startMs) / 1000
      })
      return [name, ((values * bytes) / median(seconds) / 1e9).toFixed(2)]
    })
    bench.section('codec', table(['call', 'GB/s of payload'], rows))
  },
}
