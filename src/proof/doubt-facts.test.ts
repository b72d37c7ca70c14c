import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectChecksum } from '../model/manifest.js'
import { doubtFacts, hasSourceProof } from './doubt-facts.js'
import type { ObjectFacts } from './object-facts.js'

const LISTED = { algorithm: 'sha256', value: 'c291cmNl' } as const
const S3 = 's3://bucket/flowers/'

/** What a node tells that gave its bytes a digest of its own. */
const TOLD: ObjectFacts = {
  checksums: [{ algorithm: 'sha256', value: 'bGll', isComposite: false }],
  uploadPartBytes: 8,
  isEtagMd5: false,
}

for (const { name, source, checksum, facts } of [
  {
    name: 'a listed checksum replaces what the node says',
    ...{ source: 'hf://org/model', checksum: LISTED },
    facts: {
      checksums: [{ ...LISTED, isComposite: false }],
      uploadPartBytes: 8,
      isEtagMd5: false,
      isHearsay: true,
    },
  },
  {
    name: 'a listed checksum of upload parts stays one',
    ...{ source: S3, checksum: { algorithm: 'crc32', value: 'AAAA-2' } as const },
    facts: {
      checksums: [{ algorithm: 'crc32', value: 'AAAA-2', isComposite: true }],
      ...{ uploadPartBytes: 8, isEtagMd5: false, isHearsay: true },
    },
  },
  {
    name: 'an etag of S3 is taken for an MD5',
    ...{ source: S3, checksum: null },
    facts: { checksums: [], uploadPartBytes: 8, isEtagMd5: true, isHearsay: true },
  },
  {
    name: 'where the source has nothing, the node’s word is all there is',
    source: 'file:///data/',
    checksum: null,
    facts: TOLD,
  },
] satisfies { name: string; source: string; checksum: ObjectChecksum | null; facts: ObjectFacts }[]) {
  test(`of another node’s facts, ${name}`, () => {
    assert.deepEqual(doubtFacts(TOLD, { source, checksum }), facts)
    assert.equal(hasSourceProof({ source, checksum }), facts !== TOLD)
  })
}
