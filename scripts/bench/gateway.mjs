// The gateway on ready copies beside versitygw and `rclone serve s3` over the same objects, with nginx's static files as
// the limit: 10 KiB and 100 MiB objects, read by wrk and by s5cmd, each server in turn.
// --seconds: of each run of wrk; --scale: fewer small objects, shorter large ones; --parts of small,large

import { readWithS5cmd, readWithWrk } from './gateway/clients.mjs'
import { startServers } from './gateway/servers.mjs'
import { findPrograms } from './harness/processes.mjs'
import { count, formatBytes, median, ratio, table } from './harness/tables.mjs'

const MIB = 2 ** 20

export const benchmark = {
  page: 'gateway.md',
  options: { rounds: 5, seconds: 5, scale: 1, parts: 'small,large', servers: '' },
  smoke: { rounds: 1, seconds: 1, scale: 0.01 },
  async run(bench) {
    const { scale, parts } = bench.given
    const sets = [
      {
        name: 'small',
        objects: Math.max(200, Math.round(10_000 * scale)),
        bytes: 10 * 1024,
        connections: 32,
      },
      { name: 'large', objects: 8, bytes: Math.max(MIB, Math.round(100 * MIB * scale)), connections: 8 },
    ].filter(({ name }) => parts.split(',').includes(name))
    await measureReady(bench, sets)
  },
}

async function measureReady(bench, sets) {
  const scripts = [
    'scripts/bench-peers.sh',
    'scripts/s3-servers.sh versitygw',
    `scripts/bench/gateway/tools.sh ${bench.isSmoke ? 'found' : ''}`,
  ]
  const tools = findPrograms(...scripts)
  const missing = ['versitygw', 's5cmd', 'nginx', 'wrk'].filter((name) => !tools[name])
  if (missing.length > 0) {
    for (const { name } of sets) bench.leaveOut(name, `it needs ${missing.join(', ')}`)
    return
  }
  const wanted = bench.given.servers.split(',')
  const all = await startServers(bench, { tools, sets })
  const servers = all.filter(({ name }) => bench.given.servers === '' || wanted.includes(name))
  for (const set of sets) {
    const runs = []
    // The round before the first one is not counted: it reads the disk.
    for (let round = 0; round <= bench.given.rounds; round++)
      for (const server of servers)
        for (const [client, read] of [
          ['wrk', readWithWrk],
          ...(server.isS3 ? [['s5cmd', readWithS5cmd]] : []),
        ]) {
          const seconds = round === 0 ? 1 : bench.given.seconds
          const run = await read(bench, { tools, server, set, seconds })
          if (round > 0) runs.push({ server: server.name, client, ...run })
          bench.progress(
            `${set.name} ${round} ${server.name} ${client}: ${run.objectsPerSecond.toFixed(0)} objects/s`,
          )
        }
    bench.section(set.name, `${count(set.objects)} objects of ${formatBytes(set.bytes)}.\n`, tableOf(runs))
  }
}

/** The medians of all runs: each server beside versitygw and nginx. */
function tableOf(runs) {
  const rows = [...Map.groupBy(runs, ({ client, server }) => `${client} ${server}`).values()].map((of) => {
    const { client, server } = of[0]
    const speedOf = (name) => {
      const found = runs.filter((run) => run.client === client && run.server === name)
      return found.length > 0 ? median(found.map((run) => run.objectsPerSecond)) : undefined
    }
    const speed = speedOf(server)
    const gigabytes = median(of.map((run) => run.gigabytesPerSecond)).toFixed(2)
    const cpu = median(of.map((run) => run.cpuSeconds / run.gigabytes)).toFixed(2)
    return [
      server,
      client,
      count(speed),
      gigabytes,
      ratio(speed, speedOf('versitygw')),
      ratio(speed, speedOf('nginx')),
      cpu,
    ]
  })
  const byClient = rows.toSorted((a, b) => Number(a[1] === 's5cmd') - Number(b[1] === 's5cmd'))
  const heads = ['server', 'client', 'objects/s', 'GB/s', '÷ versitygw', '÷ nginx', 'processor s/GB']
  return table(heads, byClient, { texts: 2 })
}
