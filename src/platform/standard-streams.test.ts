import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'

test('a long text of characters of any length is written whole, whatever is written at once', () => {
  const module = new URL('./standard-streams.js', import.meta.url).href
  const script = `
    import { writeAll } from ${JSON.stringify(module)}
    for (const shift of ['', 'x', 'xx', 'xxx']) writeAll('stdout', shift + 'a€😀é'.repeat(40_000))
    writeAll('stdout', '')
    writeAll('stdout', '.')`
  const { stdout, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    maxBuffer: 2 ** 24,
  })
  assert.equal(status, 0)
  assert.ok(stdout === `${['', 'x', 'xx', 'xxx'].map((shift) => shift + 'a€😀é'.repeat(40_000)).join('')}.`)
})
