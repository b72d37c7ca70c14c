import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { readDiskUsage } from './disk-usage.js'

test('readDiskUsage agrees with df on what the file system can hold', async () => {
  const [sizeBytes, inodes] = execFileSync('df', ['--output=size,itotal', '--block-size=1', '.'], {
    encoding: 'utf8',
  })
    .trim()
    .split('\n')[1]!
    .trim()
    .split(/\s+/)
  const usage = await readDiskUsage('.')
  assert.equal(usage.capacityBytes, Number(sizeBytes))
  assert.equal(usage.inodesTotal, inodes === '-' ? 0 : Number(inodes))
  assert.ok(usage.freeBytes >= 0 && usage.freeBytes <= usage.capacityBytes)
})
