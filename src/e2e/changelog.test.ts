import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const RESUME = 'kind: Fixed\narea: prepare\nline: Resume parts in flight\nlinks: #123\n'
const CODES =
  'kind: Breaking\narea: exit codes\nline: Use 12 exit codes\n\nScripts that test for 12 now get 5.\n'

/** A checkout with these changes, and the script on it. */
async function openLog(context: TestContext, changes: Readonly<Record<string, string>>) {
  const root = await temporaryDirectory(context)
  mkdirSync(join(root, 'changelog/unreleased'), { recursive: true })
  writeFileSync(join(root, 'CHANGELOG.md'), '# Changelog\n\n## 0.1.0 (2026-12-01)\n\nThe first release.\n')
  for (const [name, text] of Object.entries(changes))
    writeFileSync(join(root, 'changelog/unreleased', name), text)
  const run = (...words: string[]) =>
    spawnSync(process.execPath, ['scripts/changelog.mjs', '--root', root, ...words], { encoding: 'utf8' })
  return { root, run }
}

test('a release puts breaking changes first, above older releases, and moves the files', async (context) => {
  const { root, run } = await openLog(context, { 'a.md': RESUME, 'b.md': CODES })
  assert.equal(run('--check').stdout, '')
  assert.equal(run('--release', '0.2.0').status, 0)
  const log = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  assert.match(
    log,
    /^# Changelog\n\n## 0\.2\.0 \(\d{4}-\d\d-\d\d\)\n\n\*\*Breaking\*\*\n- \*\*exit codes\*\*: Use 12 exit codes\n {2}Scripts that test for 12 now get 5\.\n\n\*\*Fixed\*\*\n- \*\*prepare\*\*: Resume parts in flight \(#123\)\n\n## 0\.1\.0/,
  )
  assert.deepEqual(readdirSync(join(root, 'changelog/0.2.0')), ['a.md', 'b.md'])
  assert.deepEqual(readdirSync(join(root, 'changelog/unreleased')), [])
})

for (const { name, change, says } of [
  { name: 'an unknown kind', change: RESUME.replace('Fixed', 'Mended'), says: 'kind: expected Breaking, ' },
  { name: 'no area', change: RESUME.replace('area: prepare\n', ''), says: 'area: expected a command' },
  { name: 'a long line', change: RESUME.replace('Resume', 'x'.repeat(100)), says: 'line: expected 1 to 100' },
  { name: 'a period', change: RESUME.replace('flight', 'flight.'), says: 'line: expected no period' },
  {
    name: 'a breaking change without advice',
    change: CODES.slice(0, CODES.indexOf('\n\n')),
    says: 'Breaking: expected who is affected',
  },
]) {
  test(`a change with ${name} is named, and nothing is released`, async (context) => {
    const { root, run } = await openLog(context, { 'a.md': change })
    const { status, stderr } = run('--release', '0.2.0')
    assert.equal(status, 1)
    assert.ok(stderr.startsWith(`changelog/unreleased/a.md: ${says}`), stderr)
    assert.deepEqual(readdirSync(join(root, 'changelog/unreleased')), ['a.md'])
  })
}

test('the changes of this checkout can be released', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/changelog.mjs', '--check'], {
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
})
