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

test('every section of a page that says who measured it names a benchmark', async () => {
  const { stdout } = await bench()
  const names = new Set(/^Benchmarks: (.*)$/m.exec(stdout)?.[1]?.split(' '))
  assert.ok(names.has('stage') && names.size > 15)
  const marks = await Promise.all(
    globSync(`${PAGES}/*.md`).map(async (path) => [
      ...(await readFile(path, 'utf8')).matchAll(/<!-- measured by (\S+): /g),
    ]),
  )
  const unknown = marks.flat().filter(([, name]) => !names.has(name ?? ''))
  assert.deepEqual(unknown, [])
  assert.ok(marks.flat().length > 40)
})

test('a smoke run passes beside its page, and names the table that the page has and the benchmark does not write', async (context) => {
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
  assert.match(
    failed.stdout,
    /FAILED shares[\s\S]*has a table that its page has not[\s\S]*lacks a table of its page/,
  )
})

test('a benchmark that does not exist is named, and an unknown option ends in one line', async () => {
  assert.match((await bench('nonsense')).stdout, /no benchmark "nonsense"/)
  const { code, stdout } = await bench('shares', '--nonsense')
  assert.equal(code, 2)
  assert.match(stdout, /--nonsense'; --help lists the options/)
})
