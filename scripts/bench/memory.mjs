// The memory system: training steps on a GPU where there is one and on the CPU, and plans on the simulated device.
// --short: fewer repetitions

import { runPython } from './harness/processes.mjs'
import { planQuality } from './memory/plans.mjs'

export const benchmark = {
  page: 'memory.md',
  options: { short: false },
  async run(bench) {
    const isShort = bench.given.short || bench.isSmoke
    const words = isShort ? ['--short'] : []
    await runPython(bench, 'memory/on_device.py', words) // on a GPU, or that there was none
    await runPython(bench, 'memory/steps.py', words)
    bench.section('plans', planQuality({ isShort }))
  },
}
