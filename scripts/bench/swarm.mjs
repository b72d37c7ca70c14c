// One dataset to many agents at once: each in a network namespace of this machine with a root and a cable of its own,
// with a real PostgreSQL; the cables are the limit, not the processors. Needs root, iproute2 and the kernel's tbf.
// --scale 0.1 takes a tenth of each dataset, for a first look; --log FILE: what each cable carried, second by second
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryOf } from './harness/processes.mjs'
import { hasNamespaces, makeSwarm } from './harness/swarm-world.mjs'
import { count, formatBytes, median, table } from './harness/tables.mjs'
import { planFaults } from './swarm/plan-faults.mjs'
import { proveAndRemove, stageOn } from './swarm/stage-on.mjs'

export const benchmark = {
  page: 'swarm.md',
  options: {
    ...{ nodes: 32, megabits: 25, 'store-megabits': 200, scale: 1 },
    ...{ shapes: 'large,small', runs: 'alone,swarm,faults', log: '' },
  },
  smoke: { nodes: 2, megabits: 200, scale: 0.01, shapes: 'small', runs: 'alone,swarm' },
  async run(bench) {
    if (!(await hasNamespaces())) return bench.leaveOut('agents', 'network namespaces need root')
    const { nodes, megabits, 'store-megabits': storeMegabits, scale } = bench.given
    const runs = bench.given.runs.split(',')
    const shapes = [
      { name: 'large', files: Math.max(1, Math.round(8 * scale)), bytes: 32 * 1024 ** 2 },
      { name: 'small', files: Math.round(5000 * scale), bytes: 50 * 1024 },
    ]
      .filter(({ name }) => bench.given.shapes.split(',').includes(name))
      .map((shape) => ({ ...shape, total: shape.files * shape.bytes }))
    const folder = join(bench.folder, 'objects')
    mkdirSync(folder)
    const swarm = await makeSwarm(bench, { nodes, megabits, storeMegabits, shapes, runs, folder })
    const atRest = median(readMemory(swarm))
    const log = []
    if (bench.given.log) bench.after(() => writeFileSync(bench.given.log, JSON.stringify(log)))
    const rows = []
    let provenFiles = 0
    for (const shape of shapes) {
      let alone
      for (const run of runs) {
        const { result, told, proven } = await measure({ swarm, shape, run, megabits, folder })
        log.push({ ...result, nodes, megabits, storeMegabits, told })
        const seconds = result.ends.map((end) => end.seconds)
        if (run === 'alone') alone = seconds.at(-1)
        provenFiles += proven
        rows.push([
          ...[`${count(shape.files)} × ${formatBytes(shape.bytes)}`, run],
          ...[seconds[0], median(seconds), seconds.at(-1)].map((each) => each.toFixed(1)),
          alone === undefined ? '–' : (seconds.at(-1) / alone).toFixed(2),
          ...[result.sentCopies.toFixed(3), `${Math.round(100 * result.processor)} %`],
        ])
        for (const line of told ?? []) bench.progress(line)
      }
    }
    const heads = [
      'dataset',
      'run',
      'first node, s',
      'median, s',
      'last, s',
      '× alone',
      'copies from the store',
    ]
    const most = Math.round(Math.max(...readMemory(swarm)))
    bench.section(
      'agents',
      `${nodes} agents of ${megabits} Mb/s each way, store ${storeMegabits} Mb/s.\n`,
      table([...heads, 'processors busy'], rows, { texts: 2 }),
      `${count(provenFiles)} files were proven. An agent takes ${Math.round(atRest)} MiB at rest and ${most} MiB at most.`,
    )
  },
}

async function measure({ swarm, shape, run, megabits, folder }) {
  const names = swarm.cluster.nodes.map(({ name }) => name)
  const nodes = run === 'alone' ? names.slice(-1) : names
  const dataset = `${shape.name}-${run}`
  const plan = run === 'faults' ? planFaults(swarm, megabits) : undefined
  const result = await stageOn({ swarm, dataset, shape, nodes, faults: plan?.look })
  await plan?.end()
  const proven = proveAndRemove({ swarm, dataset, shape, nodes, folder })
  return { result, told: plan?.told, proven }
}

/** Resident memory of each agent, MiB. */
function readMemory({ agents }) {
  return [...agents.values()].map(({ process: { pid } }) => memoryOf(pid, 'VmRSS') / 2 ** 20)
}
