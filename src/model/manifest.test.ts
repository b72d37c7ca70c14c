import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatManifestLine } from './manifest.js'

const object = {
  key: 'a "b"\n',
  path: 'a "b"\n',
  sizeBytes: 3,
  etag: 'abc',
  versionId: null,
  checksum: { algorithm: 'crc32', value: 'AAAAAA==' },
  modifiedAtMs: 1,
} as const

test('formatManifestLine keeps its bytes: changing them changes the version of every dataset', () => {
  assert.equal(formatManifestLine(object), '["a \\"b\\"\\n",3,"abc",null,"crc32:AAAAAA=="]\n')
  assert.equal(formatManifestLine({ ...object, checksum: null }), '["a \\"b\\"\\n",3,"abc",null,null]\n')
})

test('formatManifestLine does not depend on when an object was written', () => {
  assert.equal(formatManifestLine({ ...object, modifiedAtMs: 2 }), formatManifestLine(object))
})
