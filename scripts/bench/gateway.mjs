// `npm run bench:gateway`: the gateway on ready copies beside versitygw and `rclone serve s3` over the same objects, with
// nginx's static files as the limit: 10 KiB and 100 MiB objects, read by wrk and by s5cmd, each server in turn; and the
// first byte of an arriving object beside asking the origin.
// Options: --rounds 5 --seconds 5 (of each run of wrk) --scale 1 (a fraction makes a short run: fewer small objects,
// shorter large ones) --parts small,large,arriving --write (docs/benchmarks/gateway.md)
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readWithS5cmd, readWithWrk } from './gateway-clients.mjs'
import { measureFirstBytes } from './gateway-first-byte.mjs'
import { formatReport, writePage } from './gateway-report.mjs'
import { startServers } from './gateway-servers.mjs'
import { readOptions } from './read-options.mjs'
import { findPrograms } from './stage-tools.mjs'

const { values } = readOptions(import.meta.url, {
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '5' },
    scale: { type: 'string', default: '1' },
    parts: { type: 'string', default: 'small,large,arriving' },
    servers: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const scale = Number(values.scale)
const MIB = 1024 * 1024
const SETS = {
  small: {
    name: 'small',
    objects: Math.max(200, Math.round(10_000 * scale)),
    bytes: 10 * 1024,
    connections: 32,
  },
  large: { name: 'large', objects: 8, bytes: Math.max(MIB, Math.round(100 * MIB * scale)), connections: 8 },
}
const parts = values.parts.split(',')
const sets = parts.filter((part) => part in SETS).map((part) => SETS[part])
const rounds = Number(values.rounds)
const tools = {
  ...findPrograms('scripts/bench-peers.sh'),
  ...findPrograms('scripts/s3-servers.sh'),
  ...findPrograms('scripts/bench/gateway-tools.sh'),
}
for (const name of ['versitygw', 's5cmd', 'nginx', 'wrk'])
  if (!tools[name]) throw new Error(`bench:gateway needs ${name}: see the lines above`)
const workspace = mkdtempSync(join(tmpdir(), 'dsc-bench-gateway-'))
const runs = []
const ends = []
try {
  if (sets.length > 0) await measureReady()
  const firstBytes = parts.includes('arriving')
    ? await measureFirstBytes(join(workspace, 'arriving'), { rounds, scale })
    : []
  const command = `npm run bench:gateway -- ${process.argv.slice(2).join(' ')}`.trimEnd()
  const text = formatReport({ runs, firstBytes, sets, rounds, seconds: Number(values.seconds), command })
  process.stdout.write(text)
  if (values.write) writePage(text)
} finally {
  for (const end of ends.toReversed()) await end()
  rmSync(workspace, { recursive: true, force: true })
}

async function measureReady() {
  const all = await startServers({ tools, workspace, sets, onStarted: (end) => ends.push(end) })
  const wanted = values.servers?.split(',')
  const servers = all.filter(({ name }) => wanted === undefined || wanted.includes(name))
  // The round before the first one is not counted: it reads the disk.
  for (const set of sets)
    for (let round = 0; round <= rounds; round++)
      for (const server of servers)
        for (const [client, read] of [
          ['wrk', readWithWrk],
          ...(server.isS3 ? [['s5cmd', readWithS5cmd]] : []),
        ]) {
          const seconds = round === 0 ? 1 : Number(values.seconds)
          const run = await read({ tools, workspace, server, set, seconds })
          if (round > 0) runs.push({ set: set.name, server: server.name, client, ...run })
          process.stderr.write(
            `${set.name} ${round} ${server.name} ${client}: ${run.objectsPerSecond.toFixed(0)} objects/s, ${run.gigabytesPerSecond.toFixed(2)} GB/s, ${(run.cpuSeconds / run.gigabytes).toFixed(2)} s/GB\n`,
          )
        }
}
