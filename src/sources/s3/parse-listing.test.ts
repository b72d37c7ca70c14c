import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseListing } from './parse-listing.js'

/** An answer in AWS's format, with elements that do not matter here. */
function format(
  objects: readonly { readonly key: string; readonly size: number }[],
  options: { readonly isUrlEncoded: boolean; readonly folders?: readonly string[]; readonly token?: string },
): string {
  const { isUrlEncoded, folders = [], token } = options
  const encode = (text: string) =>
    isUrlEncoded ? encodeURIComponent(text).replaceAll('%20', '+') : escapeXml(text)
  return `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><Prefix>data%2F</Prefix>${
    token === undefined ? '' : `<NextContinuationToken>${escapeXml(token)}</NextContinuationToken>`
  }<KeyCount>${objects.length + folders.length}</KeyCount><MaxKeys>1000</MaxKeys>${
    isUrlEncoded ? '<EncodingType>url</EncodingType>' : ''
  }<IsTruncated>${token !== undefined}</IsTruncated>${objects
    .map(
      ({ key, size }) =>
        `<Contents><Key>${encode(key)}</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;e${size}&quot;</ETag><ChecksumAlgorithm>CRC64NVME</ChecksumAlgorithm><Size>${size}</Size><Owner><ID>1</ID></Owner><StorageClass>STANDARD</StorageClass></Contents>`,
    )
    .join(
      '',
    )}${folders.map((folder) => `<CommonPrefixes><Prefix>${encode(folder)}</Prefix></CommonPrefixes>`).join('')}</ListBucketResult>`
}

function escapeXml(text: string): string {
  return text.replace(/[<>&"'\r\n]/g, (character) => `&#${character.charCodeAt(0)};`)
}

const key = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.string({ unit: fc.constantFrom('<', '&', '+', ' ', '%2F', '"', '\n', 'é', '😀', ']]>', '&amp;') }),
)

test('parseListing reads what a server wrote, in either encoding', () => {
  const object = fc.record({ key, size: fc.nat() })
  fc.assert(
    fc.property(
      fc.uniqueArray(object, { selector: ({ key }) => key }),
      fc.array(key),
      fc.boolean(),
      fc.option(key),
      (objects, folders, isUrlEncoded, token) => {
        const text = format(objects, { isUrlEncoded, folders, ...(token === null ? {} : { token }) })
        const page = parseListing(Buffer.from(text), '')
        assert.deepEqual(page, {
          objects: objects.map(({ key, size }) => ({
            key,
            sizeBytes: size,
            etag: `e${size}`,
            versionId: null,
            checksum: null,
            modifiedAtMs: Date.UTC(2026, 0, 2, 3, 4, 5),
          })),
          folders,
          isTruncated: token !== null,
          continuation: token || undefined,
        })
      },
    ),
  )
})

test('parseListing takes the prefix off keys and folders', () => {
  const text = format([{ key: 'data/a', size: 1 }], { isUrlEncoded: true, folders: ['data/f/'] })
  const page = parseListing(Buffer.from(text), 'data/')
  assert.deepEqual(
    page?.objects.map((object) => object.key),
    ['a'],
  )
  assert.deepEqual(page?.folders, ['f/'])
})

test('parseListing refuses a truncated listing, and any other answer', () => {
  const text = format(
    [
      { key: 'a', size: 1 },
      { key: 'b', size: 2 },
    ],
    { isUrlEncoded: true },
  )
  for (let length = 0; length < text.length; length += 1)
    assert.equal(parseListing(Buffer.from(text.slice(0, length)), ''), undefined)
  assert.equal(parseListing(Buffer.from('<html>It works!</html>'), ''), undefined)
})

test('a byte that is damaged on its way hides no key, no folder and no page', () => {
  const keys = ['data/a', 'data/b', 'data/c d'].map((key, at) => ({ key, size: 10 + at }))
  for (const counted of ['KeyCount', 'NoCount']) {
    const options = { isUrlEncoded: true, folders: ['data/e/', 'data/f/'], token: 'next' }
    const text = Buffer.from(format(keys, options).replaceAll('KeyCount', counted))
    for (let at = 0; at < text.length; at += 1)
      for (const bits of [1, 0x20, 0xff]) {
        const damaged = Buffer.from(text)
        damaged[at]! ^= bits
        const page = readDamaged(damaged)
        if (page === undefined) continue
        const what = damaged.toString('latin1', Math.max(0, at - 20), at + 20)
        assert.equal(new Set(page.objects.map(({ key }) => key)).size, 3, what)
        assert.equal(page.folders.length, 2, what)
        assert.equal(page.isTruncated, true, what)
      }
  }
})

/** Undefined: it was found out. */
function readDamaged(body: Buffer) {
  try {
    return parseListing(body, 'data/')
  } catch (error) {
    assert.ok(error instanceof URIError)
    return undefined
  }
}

test('a listing that has fewer keys than its server counted is not whole', () => {
  const text = format([{ key: 'a', size: 1 }], { isUrlEncoded: true })
  assert.equal(parseListing(Buffer.from(text.replace('<KeyCount>1', '<KeyCount>2')), ''), undefined)
  // Ceph counts no folders, others count nothing.
  assert.equal(parseListing(Buffer.from(text.replace('<KeyCount>1', '<KeyCount>0')), '')?.objects.length, 1)
})

test('parseListing reads an object without etag and date', () => {
  const page = parseListing(
    Buffer.from('<ListBucketResult><Contents><Key>a</Key><Size>0</Size></Contents></ListBucketResult>\n'),
    '',
  )
  assert.deepEqual(page?.objects, [
    { key: 'a', sizeBytes: 0, etag: null, versionId: null, checksum: null, modifiedAtMs: 0 },
  ])
  assert.equal(page?.isTruncated, true, 'it does not say that it is the last')
})
