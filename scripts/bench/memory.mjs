// The memory system: training steps on a GPU where there is one and on the CPU, plans on the simulated device, planner
// time, mirror and central node. --short: fewer repetitions

import { runPython } from './harness/processes.mjs'
import { mirrorThroughput, serverThroughput } from './memory/params.mjs'
import { plannerTime, planQuality } from './memory/plans.mjs'
import { waysQuality } from './memory/ways.mjs'

export const benchmark = {
  page: 'memory.md',
  options: { short: false },
  async run(bench) {
    const isShort = bench.given.short || bench.isSmoke
    const words = isShort ? ['--short'] : []
    await runPython(bench, 'memory/on_device.py', words) // on a GPU, or that there was none
    await runPython(bench, 'memory/steps.py', words)
    bench.section('plans', planQuality({ isShort }))
    bench.section('ways', waysQuality({ isShort }))
    bench.section('planner time', plannerTime({ isShort }))
    bench.section('mirror', await mirrorThroughput({ isShort }))
    bench.section('central node', await serverThroughput({ isShort }))
  },
}
