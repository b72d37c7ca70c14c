// How long a million keys take to be listed by dsc (into the manifest of `prepare --plan`), s5cmd and the AWS CLI, in
// turn, from a server that has only keys and answers late.
// --delay: ms before each answer; --layouts of flat,folders; --tools of dsc,s5cmd,aws
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DSC, findPrograms, runTimed, startTalking, versionOf } from './harness/processes.mjs'
import { s3Dataset, storeEnvironment, writeSettings } from './harness/stores.mjs'
import { count, median, span, table } from './harness/tables.mjs'

const SERVER = fileURLToPath(new URL('harness/listing-server.mjs', import.meta.url))

export const benchmark = {
  page: 'listing.md',
  options: { rounds: 3, keys: 1_000_000, delay: 30, layouts: 'flat,folders', tools: 'dsc,s5cmd,aws' },
  smoke: { rounds: 1, keys: 3000, delay: 1 },
  async run(bench) {
    const { rounds, keys, layouts } = bench.given
    const { endpoint } = await startListingServer(bench, bench.given)
    const programs = findPrograms('scripts/bench-peers.sh')
    const known = listTools(programs, endpoint)
    const tools = bench.given.tools.split(',').filter((tool) => tool === 'dsc' || programs[tool])
    if (tools.includes('s5cmd')) bench.versions.push(`s5cmd ${versionOf(programs.s5cmd, 'version')}`)
    if (tools.includes('aws')) bench.versions.push(versionOf(programs.aws, '--version'))
    writeSettings(
      bench.folder,
      Object.fromEntries(layouts.split(',').map((name) => [name, s3Dataset(endpoint, '', name)])),
    )
    const rows = layouts.split(',').flatMap((layout) => {
      const runs = new Map(tools.map((tool) => [tool, []]))
      for (let round = 0; round < rounds; round++)
        for (const tool of tools) {
          const run = measure(bench, { ...known[tool], layout, keys })
          runs.get(tool).push(run)
          bench.progress(`${layout} round ${round + 1} ${tool}: ${run.seconds.toFixed(2)} s`)
        }
      return tools.map((tool) => {
        const of = (name) => runs.get(tool).map((run) => run[name])
        const cells = [
          span(of('seconds'), 1),
          median(of('cpuSeconds')).toFixed(1),
          median(of('rssMiB')).toFixed(0),
        ]
        return [layout, tool, ...cells, count(keys / median(of('seconds'))), known[tool].does]
      })
    })
    const heads = ['layout', 'tool', 'seconds', 'CPU seconds', 'peak MiB', 'keys/s', 'beside listing']
    bench.section('tools', table(heads, rows, { texts: 2 }))
  },
}

/** A server of keys that it makes up, at `port` if that is given; with `isEmpty` objects have no bytes. */
export async function startListingServer(bench, { keys, delay, isEmpty = false, port = 0 }) {
  const env = { ...process.env, ...(isEmpty ? { EMPTY: 'yes' } : {}), PORT: `${port}` }
  const { line } = await startTalking(bench, [process.execPath, SERVER, keys, delay], { env })
  return { endpoint: `http://127.0.0.1:${line}`, port: line }
}

/** How each tool lists a bucket, and how many keys its output has. */
function listTools({ s5cmd, aws }, endpoint) {
  const countLines = (output) => output.split('\n').length - 1
  return {
    dsc: {
      words: (layout) => [...DSC, 'prepare', layout, '--plan', '--json'],
      countKeys: (output) => JSON.parse(output).files,
      does: 'checks keys, computes the version, fills the manifest database',
    },
    s5cmd: {
      words: (layout) => [s5cmd, '--endpoint-url', endpoint, 'ls', `s3://${layout}/*`],
      ...{ countKeys: countLines, does: 'prints' },
    },
    aws: {
      words: (layout) => [aws, '--endpoint-url', endpoint, 's3', 'ls', '--recursive', `s3://${layout}/`],
      ...{ countKeys: countLines, does: 'prints' },
    },
  }
}

function measure(bench, { words, countKeys, layout, keys }) {
  const output = join(bench.folder, 'output')
  const run = runTimed(words(layout), { cwd: bench.folder, env: storeEnvironment(), output })
  const found = countKeys(readFileSync(output, 'utf8'))
  if (found !== keys) throw new Error(`${words(layout).join(' ')} found ${found} of ${keys} keys`)
  return run
}
