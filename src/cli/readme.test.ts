import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { FAILURES } from '../failure/dsc-error.js'

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')

test('the README publishes every exit code as it is', () => {
  const published = [...readme.matchAll(/^\| (\d+) \| `([A-Z_]+)` \| (.+) \|$/gm)].map((row) => row.slice(1))
  const actual = Object.entries(FAILURES).map(([code, { exitCode, meaning }]) => [
    `${exitCode}`,
    code,
    meaning,
  ])
  assert.deepEqual(
    published.filter(([, code]) => code !== 'OK' && code !== 'INTERNAL'),
    actual,
  )
})
