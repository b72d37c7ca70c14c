import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { testSourceContract } from '../../source.contract.js'
import { openFileSource } from './file-source.js'

function openAt(directory: string) {
  return openFileSource({ name: 'd', source: `${pathToFileURL(directory)}/`, include: [], exclude: [] })
}

testSourceContract('file', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  return {
    source: openAt(directory),
    async put(key, body) {
      mkdirSync(dirname(join(directory, key)), { recursive: true })
      writeFileSync(join(directory, key), body)
    },
    remove: async (key) => rmSync(join(directory, key)),
    close: async () => rmSync(directory, { recursive: true }),
  }
})

test('a file source follows symlinks inside its directory and none that lead out or round', async (context) => {
  const directory = mkdtempSync(join(tmpdir(), 'dsc-file-source-'))
  context.after(() => rmSync(directory, { recursive: true }))
  const root = join(directory, 'root')
  mkdirSync(join(root, 'real'), { recursive: true })
  writeFileSync(join(root, 'real/x'), 'x')
  writeFileSync(join(directory, 'secret'), 'secret')
  symlinkSync('real', join(root, 'alias'))
  symlinkSync('real/x', join(root, 'file-alias'))
  symlinkSync('../secret', join(root, 'out'))
  symlinkSync('..', join(root, 'up'))
  symlinkSync('..', join(root, 'real/round'))
  symlinkSync('nowhere', join(root, 'broken'))
  const keys: string[] = []
  for await (const page of openAt(root).list({})) keys.push(...page.map((object) => object.key))
  assert.deepEqual(keys.sort(), ['alias/x', 'file-alias', 'real/x'])
})

test('a missing directory is SOURCE_NOT_FOUND', async () => {
  await assert.rejects(openAt('/no/such/directory').list({})[Symbol.asyncIterator]().next(), {
    code: 'SOURCE_NOT_FOUND',
  })
})
