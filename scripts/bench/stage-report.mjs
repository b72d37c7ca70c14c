// The page that stage.mjs writes.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, loadavg } from 'node:os'

const MIB = 1024 * 1024
const PAGE = 'docs/benchmarks/stage.md'

/** The figures of all runs as a table, each tool beside dsc. */
export function formatReport({ results, sets, tools, rounds, versions, command }) {
  const text = [
    `${cpus().length} × ${cpus()[0].model}, load ${loadavg()[0].toFixed(1)} at the end; node ${process.versions.node}, versitygw, ${versions}.`,
    `Everything on one machine and one disk; the server shares the processors. ${rounds} rounds, tools in turn: median (least–most). Command: \`${command}\`\n`,
    `| objects | tool | seconds | wall ÷ dsc | CPU seconds | peak MiB | objects/s | MB/s | verified GB per CPU second | safety |`,
    '|---|---|---|---|---|---|---|---|---|---|',
  ]
  for (const { name, objects, bytes } of sets) {
    const of = (tool) => results.filter((result) => result.set === name && result.tool === tool)
    const base = median(of('dsc').map(({ seconds }) => seconds))
    for (const [tool, { does, verifies }] of Object.entries(tools)) {
      const runs = of(tool)
      const seconds = runs.map((run) => run.seconds)
      const middle = median(seconds)
      const cpuSeconds = median(runs.map((run) => run.cpuSeconds))
      const verified = verifies ? ((objects * bytes) / 1e9 / cpuSeconds).toFixed(2) : '-'
      text.push(
        `| ${objects.toLocaleString('en')} × ${formatBytes(bytes)} | ${tool} | ${middle.toFixed(2)} (${Math.min(...seconds).toFixed(2)}–${Math.max(...seconds).toFixed(2)}) | ${(middle / base).toFixed(2)} | ${cpuSeconds.toFixed(2)} | ${median(runs.map(({ rssMiB }) => rssMiB)).toFixed(0)} | ${(objects / middle).toFixed(0)} | ${((objects * bytes) / 1e6 / middle).toFixed(1)} | ${verified} | ${does} |`,
      )
    }
  }
  return `${text.join('\n')}\n`
}

/** Renews the published page and keeps what people made of its table. */
export function writePage(text) {
  const old = existsSync(PAGE) ? readFileSync(PAGE, 'utf8') : ''
  const notes = old.includes('\n## ') ? old.slice(old.indexOf('\n## ')) : ''
  writeFileSync(PAGE, `# Staging beside other tools\n\n${text}${notes}`)
}

function formatBytes(bytes) {
  if (bytes >= 1024 * MIB) return `${bytes / 1024 / MIB} GiB`
  return bytes >= MIB ? `${Math.round(bytes / MIB)} MiB` : `${bytes / 1024} KiB`
}

function median(numbers) {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)]
}
