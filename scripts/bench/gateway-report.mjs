// The page that gateway.mjs writes.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

const PAGE = 'docs/benchmarks/gateway.md'

/** The medians of all runs as tables: each server beside the one that its goal names. */
export function formatReport({ runs, firstBytes, sets, rounds, seconds, command }) {
  const lines = [
    `${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; node ${process.versions.node}.`,
    `Everything runs on one machine; server and client share the processors. ${rounds} rounds of ${seconds} s for wrk,`,
    'servers in turn: medians. Command:\n',
    '```sh',
    command,
    '```',
    ...sets.flatMap((set) => tableOf(set, runs)),
    ...(firstBytes.length > 0 ? firstByteTable(firstBytes) : []),
  ]
  return `${lines.join('\n')}\n`
}

function tableOf({ name, objects, bytes, connections }, runs) {
  const lines = [
    `\n## ${objects.toLocaleString('en')} objects of ${formatBytes(bytes)}\n`,
    `wrk has one thread and ${connections} connections; s5cmd has 32 workers and writes to a folder in memory.\n`,
    '| server | client | objects/s | GB/s | ÷ versitygw | ÷ nginx | processor s/GB |',
    '|---|---|---|---|---|---|---|',
  ]
  const find = (server, client) => {
    const found = runs.filter((run) => run.set === name && run.server === server && run.client === client)
    if (found.length === 0) return undefined
    return {
      objects: median(found.map((run) => run.objectsPerSecond)),
      gigabytes: median(found.map((run) => run.gigabytesPerSecond)),
      cpu: median(found.map((run) => run.cpuSeconds / run.gigabytes)),
    }
  }
  for (const client of ['wrk', 's5cmd'])
    for (const server of new Set(runs.map((run) => run.server))) {
      const found = find(server, client)
      if (!found) continue
      const beside = (other) => {
        const base = find(other, client)
        return base ? (found.objects / base.objects).toFixed(2) : '–'
      }
      const cells = [
        server,
        client,
        Math.round(found.objects).toLocaleString('en'),
        found.gigabytes.toFixed(2),
      ]
      lines.push(`| ${[...cells, beside('versitygw'), beside('nginx'), found.cpu.toFixed(2)].join(' | ')} |`)
    }
  return lines
}

function firstByteTable(firstBytes) {
  const of = (name, byte) => median(firstBytes.map((round) => round[name][byte]))
  const row = (label, name) => {
    const cells = ['firstMs', 'lastMs'].flatMap((byte) => {
      const ms = of(name, byte)
      return [ms.toFixed(1), (ms / of('beside', byte)).toFixed(2)]
    })
    return `| ${[label, ...cells].join(' | ')} |`
  }
  return [
    '\n## First byte of an object that is not here yet\n',
    'Objects of 100 KiB behind a link of 1 Gb/s with 20 ms, asked for one after the other while their dataset is staged',
    'over that link. Nothing is sent before it is proven, and an object of this size is proven by its last byte.\n',
    '| asked | first byte, ms | ÷ the origin while staging | last byte, ms | ÷ the origin while staging |',
    '|---|---|---|---|---|',
    row('the gateway', 'arriving'),
    row('the origin, while the same staging goes on', 'beside'),
    row('the origin, nothing else on the link', 'idle'),
    row('the gateway, before it knew the dataset: listing and admission', 'first'),
  ]
}

/** Renews the published page and keeps what people made of its tables. */
export function writePage(text) {
  const old = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
  const notes = old.includes('\n## What ') ? old.slice(old.indexOf('\n## What ')) : ''
  writeFileSync(PAGE, `# The gateway beside other servers\n\n${text}${notes}`)
}

function formatBytes(bytes) {
  return bytes >= 1024 * 1024 ? `${Math.round(bytes / 1024 / 1024)} MiB` : `${bytes / 1024} KiB`
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
