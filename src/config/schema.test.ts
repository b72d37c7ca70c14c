import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createJsonSchema } from './schema.js'

test('src/config/dsc.schema.json is what the schema says (renew it with `npm run schema`)', () => {
  const file = new URL('../../src/config/dsc.schema.json', import.meta.url)
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), JSON.parse(JSON.stringify(createJsonSchema())))
})

test('the JSON Schema explains every key', () => {
  const unexplained: string[] = []
  const visit = (schema: Record<string, unknown>, path: string) => {
    for (const [key, child] of Object.entries(
      (schema.properties ?? {}) as Record<string, Record<string, unknown>>,
    )) {
      if (typeof child.description !== 'string') unexplained.push(`${path}${key}`)
      visit(child, `${path}${key}.`)
    }
    if (typeof schema.additionalProperties === 'object')
      visit(schema.additionalProperties as Record<string, unknown>, `${path}*.`)
  }
  visit(createJsonSchema() as Record<string, unknown>, '')
  assert.deepEqual(unexplained, [])
})
