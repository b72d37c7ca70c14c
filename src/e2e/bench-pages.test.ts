import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const MAIN = 'scripts/bench/main.mjs'
const PAGES = 'docs/benchmarks'

/** Runs `npm run bench -- …` without its build. */
function bench(...words: string[]): Promise<{ code: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...words], (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code ?? 1) : 0, stdout: `${stdout}${stderr}` })
    })
  })
}

test('every page has one table, a day, and the command of a benchmark that exists', async () => {
  const { stdout } = await bench()
  const names = new Set(/^Benchmarks: (.*)$/m.exec(stdout)?.[1]?.split(' '))
  assert.ok(names.has('stage') && names.size > 15)
  const pages = await Promise.all(
    globSync(`${PAGES}/*.md`).map(async (path) => ({ path, text: await readFile(path, 'utf8') })),
  )
  const marks = pages.flatMap(({ text }) => [...text.matchAll(/<!-- measured by (\S+): /g)])
  const unknown = marks.filter(([, name]) => !names.has(name ?? ''))
  assert.deepEqual(unknown, [])
  assert.ok(marks.length > 12)
  for (const { path, text } of pages) {
    assert.equal(text.match(/^\|[\s:|-]+\|$/gm)?.length, 1, `${path} has one table`)
    assert.match(text, /npm run bench -- /, `${path} names its command`)
    assert.match(text, /\b20\d\d-\d\d-\d\d\b/, `${path} has the day`)
  }
})

test('a smoke run passes beside its page, and names the table that the page has and the run lacks', async (context) => {
  const pages = await temporaryDirectory(context)
  await cp(PAGES, pages, { recursive: true })
  const passed = await bench('--smoke', 'shares', '--pages', pages)
  assert.equal(passed.code, 0, passed.stdout)
  const path = join(pages, 'shares.md')
  await writeFile(
    path,
    (await readFile(path, 'utf8')).replace('| refusals | fetched |', '| refused | fetched |'),
  )
  const failed = await bench('--smoke', 'shares', '--pages', pages)
  assert.equal(failed.code, 1)
  assert.match(failed.stdout, /FAILED shares[\s\S]*lacks a table of its page/)
})

test('a run renews the tables that its page has, and all of a section without tables', async (context) => {
  const { writePage } = await import(join(process.cwd(), 'scripts/bench/harness/page-sections.mjs'))
  const path = join(await temporaryDirectory(context), 'own.md')
  const section = (title: string, text: string) => `<!-- measured by own: ${title} -->\n${text}\n<!-- end -->`
  const table = (head: string, value: number) => `| ${head} |\n| --- |\n| ${value} |`
  const page = (value: number) =>
    `Prose.\n${section('tables', `how\n\n${table('a', value)}`)}\n${section('lines', `how\n\n${value} ms`)}\n`
  await writeFile(path, page(1))
  const sections = new Map([
    ['tables', `${table('b', 2)}\n\n${table('a', 2)}`],
    ['lines', '2 ms'],
    ['more', 'not on the page'],
  ])
  writePage(path, { name: 'own', sections, pictures: new Map(), how: 'how' })
  assert.equal(await readFile(path, 'utf8'), page(2))
})

test('a benchmark without a page says so before it runs', async () => {
  const { code, stdout } = await bench('codec', '--write')
  assert.equal(code, 2)
  assert.equal(stdout, 'codec: this benchmark has no page to write; run it without --write\n')
})

test('a benchmark that does not exist is named, and an unknown option ends in one line', async () => {
  assert.match((await bench('nonsense')).stdout, /no benchmark "nonsense"/)
  const { code, stdout } = await bench('shares', '--nonsense')
  assert.equal(code, 2)
  assert.match(stdout, /--nonsense'; --help lists the options/)
})
