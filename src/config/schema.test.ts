import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createJsonSchema } from './schema.js'

test('src/config/dsc.schema.json is what the schema says (renew it with `npm run schema`)', () => {
  const file = new URL('../../src/config/dsc.schema.json', import.meta.url)
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), JSON.parse(JSON.stringify(createJsonSchema())))
})

/** Every key that a person can write, dotted, with its description. */
function listKeys(schema: Record<string, unknown>, path = ''): { key: string; description: unknown }[] {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Record<string, unknown>>)
  const { additionalProperties } = schema
  return [
    ...properties.flatMap(([key, child]) => [
      { key: path + key, description: child.description },
      ...listKeys(child, `${path}${key}.`),
    ]),
    ...(typeof additionalProperties === 'object'
      ? listKeys(additionalProperties as Record<string, unknown>, `${path}<name>.`)
      : []),
  ]
}

const KEYS = listKeys(createJsonSchema() as Record<string, unknown>)

test('the JSON Schema explains every key', () => {
  assert.ok(KEYS.length > 20)
  assert.deepEqual(
    KEYS.filter(({ description }) => typeof description !== 'string'),
    [],
  )
})
