// Measures the memory system: training steps on a GPU where there is one and on the CPU, plan quality on the simulated
// device, planner time, mirror and central node. Writes docs/benchmarks/memory.md and the timeline beside it.
// --short: fewer repetitions. --models: instead, public models under plans, into docs/benchmarks/memory-models.md.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'
import { publicModels } from './memory-models.mjs'
import { mirrorThroughput, serverThroughput } from './memory-params.mjs'
import { plannerTime, planQuality, timeline } from './memory-plans.mjs'
import { waysQuality } from './memory-ways.mjs'

if (process.argv.includes('--models')) {
  publicModels()
  process.exit()
}
const isShort = process.argv.includes('--short')
const lines = []
const say = (line = '') => {
  lines.push(line)
  process.stdout.write(`${line}\n`)
}

say('# Memory: measurements')
say()
say(
  `Made by \`npm run bench:memory${isShort ? ' -- --short' : ''}\` on ${cpus().length} × ${cpus()[0].model}, Node ${process.version},`,
)
const load = loadavg()[0]
say(
  `load average ${load.toFixed(1)} at the start${load > 1 ? ': the times below were taken beside other work' : ''}.`,
)
say()
runPython('memory_device.py') // on a GPU, or that there was none
runPython('memory_steps.py')
mkdirSync('docs/benchmarks', { recursive: true })
planQuality(say)
waysQuality(say, isShort)
timeline(say)
plannerTime(say, isShort)
await mirrorThroughput(say, isShort)
await serverThroughput(say, isShort)
writeFileSync('docs/benchmarks/memory.md', `${lines.join('\n')}\n`)

/** Says what a script beside this one prints. */
function runPython(name) {
  const venv = execFileSync('bash', ['scripts/python-venv.sh'], { encoding: 'utf8' }).trim()
  const words = [`scripts/bench/${name}`, ...(isShort ? ['--short'] : [])]
  say(execFileSync(`${venv}/bin/python`, words, { encoding: 'utf8' }).trim())
  say()
}
