import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type DscError, isDscError } from '../../failure/dsc-error.js'
import { needs } from '../../testing/needs.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { indexSamples } from '../index-samples.js'

const list = (folder: string) => indexSamples(folder, { cacheFolder: undefined })

/** Writes a folder of two shards, tables or files of lines, and one in a subfolder. */
function write(context: TestContext, kind: string): string {
  const folder = join(makeTestFolder(context), 'data')
  mkdirSync(join(folder, 'more'), { recursive: true })
  for (const name of ['a', 'more/b']) {
    const path = join(folder, `${name}.${kind}`)
    const text = `{"text":"one of ${name}"}\n{"text":"two"}\n`
    writeFileSync(kind === 'tar' ? join(folder, '..', 'sample.txt') : path, text.repeat(50))
    if (kind === 'tar') execFileSync('tar', ['-cf', path, '-C', join(folder, '..'), 'sample.txt'])
  }
  return folder
}

for (const { kind, tool, debianPackage, words } of [
  { kind: 'tar', tool: 'gzip', debianPackage: 'gzip', words: ['-r', '.'] },
  { kind: 'jsonl', tool: 'gzip', debianPackage: 'gzip', words: ['-r', '.'] },
  { kind: 'csv', tool: 'bzip2', debianPackage: 'bzip2', words: ['a.csv', 'more/b.csv'] },
  { kind: 'tsv', tool: 'xz', debianPackage: 'xz-utils', words: ['a.tsv', 'more/b.tsv'] },
  { kind: 'tar', tool: 'zstd', debianPackage: 'zstd', words: ['-q', '--rm', 'a.tar', 'more/b.tar'] },
])
  test(`${kind} files that ${tool} packed are refused with the command that makes them readable`, {
    skip: needs(tool, debianPackage),
  }, async (context) => {
    const folder = write(context, kind)
    const before = readAllSamples(await list(folder))
    execFileSync(tool, words, { cwd: folder })
    let refusal: DscError | undefined
    await assert.rejects(list(folder), (error) => {
      if (isDscError(error, 'USAGE')) refusal = error
      return refusal !== undefined
    })
    const [, command = ''] = /comes from: (.*); or --as/.exec(refusal!.hint ?? '') ?? []
    execFileSync('sh', ['-c', command], { cwd: folder })
    assert.deepEqual(readAllSamples(await list(folder)), before)
  })
