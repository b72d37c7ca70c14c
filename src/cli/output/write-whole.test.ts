import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { writeWhole } from './write-whole.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-write-'))
after(() => rmSync(root, { recursive: true }))

test('a file is written whole into a folder that is made for it, over an older one', async () => {
  const path = join(root, 'a/b/file')
  for (const text of ['older', 'newer']) {
    await writeWhole(path, text, '')
    assert.equal(readFileSync(path, 'utf8'), text)
  }
  assert.deepEqual(readdirSync(join(root, 'a/b')), ['file'])
})

test('a place that refuses is told with its reason, and the hint', async () => {
  writeFileSync(join(root, 'plain'), '')
  symlinkSync('/nowhere/at/all', join(root, 'dangling'))
  for (const [path, code] of [
    [join(root, 'plain/a/file'), 'ENOTDIR'],
    [join(root, 'dangling/a/file'), 'EEXIST'],
  ] as const)
    await assert.rejects(writeWhole(path, '', 'elsewhere'), {
      code: 'CONFIG_INVALID',
      message: `cannot write ${path}: ${code}`,
      hint: 'elsewhere',
    })
})

/** Makes a read-only file system of its own at `root` and runs Node in it. */
const READ_ONLY = 'mount -t tmpfs -o ro none "$1" && exec "$2" --input-type=module -e "$3"'

function runReadOnly(program: string) {
  const words = ['--map-root-user', '--mount', 'sh', '-c', READ_ONLY, 'sh', root, process.execPath, program]
  return spawnSync('unshare', words, { encoding: 'utf8' })
}

test('a read-only home is told as such, however many folders are missing in it', {
  skip: runReadOnly('').status !== 0 && 'needs leave to mount in namespaces of its own',
}, () => {
  for (const path of [join(root, 'file'), join(root, 'folder/file'), join(root, 'a/deep/folder/file')]) {
    const program = `
      const { writeWhole } = await import('${new URL('./write-whole.js', import.meta.url)}')
      await writeWhole('${path}', '', 'elsewhere').catch(({ message }) => console.log(message))`
    const { stdout, stderr } = runReadOnly(program)
    assert.equal(stdout, `cannot write ${path}: EROFS\n`, stderr)
  }
})
