// One dataset to many agents at once: each in a network namespace of this machine with a root and a cable of its own,
// with a real PostgreSQL; the cables are the limit, not the processors. Needs root, iproute2 and the kernel's tbf.
// Usage: npm run bench:swarm -- [--nodes 32] [--megabits 25] [--store-megabits 200] [--scale 1] [--shapes large,small]
//   [--runs alone,swarm,faults] [--log FILE]        --scale 0.1 takes a tenth of each dataset: for a first look
import { mkdtempSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { readOptions } from './read-options.mjs'
import { planFaults } from './swarm-faults.mjs'
import { proveAndRemove, readMemory, stageOn } from './swarm-run.mjs'
import { makeSwarm } from './swarm-world.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    nodes: { type: 'string', default: '32' },
    megabits: { type: 'string', default: '25' },
    'store-megabits': { type: 'string', default: '200' },
    scale: { type: 'string', default: '1' },
    shapes: { type: 'string', default: 'large,small' },
    runs: { type: 'string', default: 'alone,swarm,faults' },
    log: { type: 'string' },
  },
})
const [nodes, megabits, storeMegabits, scale] = ['nodes', 'megabits', 'store-megabits', 'scale'].map((name) =>
  Number(values[name]),
)
const runs = values.runs.split(',')
const shapes = [
  { name: 'large', files: Math.max(1, Math.round(8 * scale)), bytes: 32 * 1024 ** 2 },
  { name: 'small', files: Math.round(5000 * scale), bytes: 50 * 1024 },
]
  .filter(({ name }) => values.shapes.split(',').includes(name))
  .map((shape) => ({ ...shape, total: shape.files * shape.bytes }))

const ends = []
const context = { after: (end) => ends.unshift(end) }
const folder = mkdtempSync(join(tmpdir(), 'dsc-swarm-'))
const log = []
for (const signal of ['SIGTERM', 'SIGINT'])
  process.once(signal, () => void close().then(() => process.exit(1)))
try {
  const swarm = await makeSwarm(context, { nodes, megabits, storeMegabits, shapes, runs, folder })
  process.stdout.write(
    `${nodes} agents of ${megabits} Mb/s each way, store ${storeMegabits} Mb/s; ${cpus().length} × ${cpus()[0].model}, ` +
      `Node ${process.versions.node}; an agent at rest takes ${median(readMemory()).toFixed(0)} MiB\n\n` +
      '| dataset | run | first node, s | median, s | last, s | × alone | copies from the store | processors busy | files proven |\n' +
      '|---|---|--:|--:|--:|--:|--:|--:|--:|\n',
  )
  const names = swarm.cluster.nodes.map(({ name }) => name)
  for (const shape of shapes) {
    let alone
    for (const run of runs) {
      const taking = run === 'alone' ? names.slice(-1) : names
      const dataset = `${shape.name}-${run}`
      const plan = run === 'faults' ? planFaults(swarm, megabits) : undefined
      const result = await stageOn({ swarm, dataset, shape, nodes: taking, faults: plan?.look })
      await plan?.end()
      const proven = proveAndRemove({ swarm, dataset, shape, nodes: taking, folder })
      log.push({ ...result, nodes, megabits, storeMegabits, told: plan?.told })
      const last = result.ends.at(-1).seconds
      if (run === 'alone') alone = last
      const cells = [
        `${shape.files.toLocaleString('en-US')} × ${(shape.bytes / 1024).toLocaleString('en-US')} KiB`,
        run,
        ...[result.ends[0].seconds, median(result.ends.map(({ seconds }) => seconds)), last].map((s) =>
          s.toFixed(1),
        ),
        alone === undefined ? '–' : (last / alone).toFixed(2),
        result.sentCopies.toFixed(3),
        `${Math.round(100 * result.processor)} %`,
        proven.toLocaleString('en-US'),
      ]
      process.stdout.write(`| ${cells.join(' | ')} |\n`)
      for (const line of plan?.told ?? []) process.stderr.write(`${line}\n`)
    }
  }
  process.stdout.write(`\nagents take ${Math.round(Math.max(...readMemory()))} MiB at most\n`)
} finally {
  await close()
  if (values.log) writeFileSync(values.log, JSON.stringify(log))
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}

async function close() {
  for (const end of ends.splice(0)) await end()
}
