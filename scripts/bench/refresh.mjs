// What it takes to find out that nothing has changed in a dataset of a million objects, beside its first listing. The
// objects are empty, so that a copy of them can be made; the store answers late.
// --delay: ms before each answer; --at FOLDER: keeps the staged copy there, and takes it from there the next time
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DSC, runTimed } from './harness/processes.mjs'
import { s3Dataset, storeEnvironment, writeSettings } from './harness/stores.mjs'
import { median, span, table } from './harness/tables.mjs'
import { startListingServer } from './listing.mjs'

export const benchmark = {
  page: 'growth.md',
  options: { rounds: 3, keys: 1_000_000, delay: 30, at: '' },
  smoke: { rounds: 1, keys: 3000, delay: 1 },
  async run(bench) {
    const { rounds, keys, delay, at } = bench.given
    const folder = at ? resolve(at) : bench.folder
    mkdirSync(folder, { recursive: true })
    /** A copy that is kept was listed at this port: at another it would be a copy of another source. */
    const portFile = join(folder, 'port')
    const kept = existsSync(portFile) ? readFileSync(portFile, 'utf8') : 0
    const { endpoint, port } = await startListingServer(bench, { keys, delay, isEmpty: true, port: kept })
    writeFileSync(portFile, port)
    const dataset = s3Dataset(endpoint, '', 'folders')
    writeSettings(folder, { staged: dataset, unknown: dataset })
    const run = (...words) => runTimed([...DSC, ...words], { cwd: folder, env: storeEnvironment() })
    if (!existsSync(join(folder, 'cache/copies/staged'))) run('prepare', 'staged', '--task', 'bench')
    const runs = { 'first listing (`prepare --plan`)': [], '`prepare --refresh`, nothing new': [] }
    const [first, again] = Object.values(runs)
    for (let round = 0; round < rounds; round++) {
      first.push(run('prepare', 'unknown', '--plan', '--json'))
      again.push(run('prepare', 'staged', '--task', 'bench', '--refresh'))
    }
    const rows = Object.entries(runs).map(([name, found]) => {
      const of = (what) => found.map((one) => one[what])
      return [
        name,
        span(of('seconds'), 1),
        median(of('cpuSeconds')).toFixed(1),
        median(of('rssMiB')).toFixed(0),
      ]
    })
    bench.section('refresh', table(['', 'seconds', 'processor seconds', 'peak MiB'], rows))
  },
}
