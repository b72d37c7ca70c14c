// npm run bench                               lists the benchmarks
// npm run bench -- NAME [options]             runs one and prints its tables; --write puts them into its page
// npm run bench -- NAME --help                prints the options of one
// npm run bench -- --smoke [NAME …]           runs each once in its smallest form, seconds each, and fails where a page
//                                             has a table that its benchmark no longer measures; a run may have
//                                             more than its page
// --pages FOLDER: where the pages are (default: docs/benchmarks).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Bench } from './harness/bench.mjs'
import { compareShapes, readSections, writePage } from './harness/page-sections.mjs'
import { parseWords, printHead } from './harness/read-options.mjs'

const NAMES =
  `start warm stage survival peers listing refresh growth history cluster swarm swarm-model shares cold gateway feed
  formats exchange codec memory`.split(/\s+/)
const ROOT = join(import.meta.dirname, '../..')
const { common, positionals, rest } = parseWords(process.argv.slice(2))
const pages = common.pages ?? join(ROOT, 'docs/benchmarks')
process.chdir(ROOT)
process.env.PATH = `${join(ROOT, 'node_modules/.bin')}:${process.env.PATH}:/usr/sbin:/sbin`
if (common.smoke) process.exitCode = await smoke(positionals.length > 0 ? positionals : NAMES)
else if (positionals.length === 0) printHead(import.meta.filename, `\nBenchmarks: ${NAMES.join(' ')}`)
else await measure(positionals)

async function load(name) {
  if (!NAMES.includes(name)) throw new Error(`there is no benchmark "${name}": ${NAMES.join(' ')}`)
  return (await import(`./${name}.mjs`)).benchmark
}

async function measure([name]) {
  const benchmark = await load(name)
  if (common.help) return printHead(join(import.meta.dirname, `${name}.mjs`), describeOptions(benchmark))
  if (common.write && !benchmark.page) {
    process.stderr.write(`${name}: this benchmark has no page to write; run it without --write\n`)
    process.exit(2)
  }
  const bench = new Bench(name, { benchmark, words: rest })
  await bench.run()
  for (const [title, text] of bench.sections)
    process.stdout.write(`\n**${title}**: ${bench.how}\n\n${text}\n`)
  if (common.write) writePage(join(pages, benchmark.page), bench)
}

function describeOptions({ options = {} }) {
  const lines = Object.entries(options).map(
    ([option, value]) => `  --${option} ${value === false ? '' : value}`,
  )
  return `\nOptions and their defaults:\n${lines.join('\n')}`
}

/** Returns the exit status: 1 where a benchmark failed or its page has other tables. */
async function smoke(names) {
  let failed = 0
  for (const name of names) {
    const startMs = performance.now()
    let bench
    let problems = []
    try {
      const benchmark = await load(name)
      bench = new Bench(name, { benchmark, words: [], isSmoke: true })
      await bench.run()
      const page = benchmark.page && readFileSync(join(pages, benchmark.page), 'utf8')
      if (page) problems = compareShapes(readSections(page, name), bench)
    } catch (error) {
      problems = [error.stack]
    }
    failed += problems.length > 0 ? 1 : 0
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1)
    process.stdout.write(
      `${problems.length > 0 ? 'FAILED' : 'ok'} ${name} (${seconds} s, ${bench?.sections.size ?? 0} sections)\n`,
    )
    for (const problem of problems) process.stdout.write(`  ${problem}\n`)
    for (const [title, why] of bench?.leftOut ?? []) process.stdout.write(`  not covered: ${title}: ${why}\n`)
  }
  return failed > 0 ? 1 : 0
}
