import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { isDscError } from '../../failure/dsc-error.js'
import { readAllSamples } from '../../testing/read-all-samples.js'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { type IndexOptions, indexSamples } from '../index-samples.js'
import { parseRecord } from './csv-dialect.js'

/** Returns the samples of a folder with these files: their names, and their bytes as text. */
async function samplesOf(
  context: TestContext,
  files: Readonly<Record<string, string | Buffer>>,
  options: Partial<IndexOptions> = {},
) {
  const root = makeTestFolder(context)
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(root, name), bytes)
  const listed = await indexSamples(root, { cacheFolder: undefined, ...options })
  const names = Array.from({ length: listed.table.count }, (_, sample) => listed.table.nameOf(sample))
  return { ...listed, names, texts: readAllSamples(listed).map(String) }
}

for (const { name, text, lines } of [
  { name: 'a last line without its end', text: '{"a":1}\n{"a":2}', lines: ['{"a":1}', '{"a":2}'] },
  { name: 'ends of two bytes', text: '{"a":1}\r\n{"a":2}\r\n', lines: ['{"a":1}', '{"a":2}'] },
  { name: 'blank lines', text: '\n\n{"a":1}\n \t\r\n\n{"a":2}\n\n', lines: ['{"a":1}', '{"a":2}'] },
  { name: 'a byte order mark', text: '\uFEFF{"a":1}\n{"a":2}\n', lines: ['{"a":1}', '{"a":2}'] },
  { name: 'one line', text: '{"é":"ß"}', lines: ['{"é":"ß"}'] },
]) {
  test(`lines of JSON are samples: a file with ${name}`, async (context) => {
    const { texts, names, table } = await samplesOf(context, { 'a.jsonl': text })
    assert.deepEqual(texts, lines)
    assert.deepEqual(
      names,
      lines.map((_, row) => `a.jsonl:${row}`),
    )
    assert.deepEqual(table.encodings, [{ format: 'json' }])
  })
}

test('lines longer than what is read at once, and files of several such parts, are whole', async (context) => {
  const long = `{"a":"${'x'.repeat(9 << 20)}"}`
  const short = Array.from({ length: 300_000 }, (_, i) => `{"line":${i}}`)
  const text = [...short.slice(0, 150_000), long, ...short.slice(150_000)].join('\n')
  const { texts } = await samplesOf(context, { 'a.ndjson': text })
  assert.deepEqual(texts, text.split('\n'))
})

for (const { name, text, delimiter = ',', columns, records } of [
  { name: 'plain fields', text: 'a,b\n1,2\n3,4', columns: ['a', 'b'], records: ['1,2', '3,4'] },
  {
    name: 'line feeds, commas and quotes inside quotes',
    text: '"a\nb",c\r\n"1\n,""2""\n",x\r\ny,"z"\r\n',
    columns: ['a\nb', 'c'],
    records: ['"1\n,""2""\n",x', 'y,"z"'],
  },
  {
    name: 'a quote inside of a field',
    text: 'a\n5" nail\n6" nail\n',
    columns: ['a'],
    records: ['5" nail', '6" nail'],
  },
  { name: 'empty lines and fields', text: 'a,b\n\n,\n"",""\n', columns: ['a', 'b'], records: [',', '"",""'] },
  {
    name: 'tabs',
    text: 'a\tb\n1,5\t"2\n3"\n',
    delimiter: '\t',
    columns: ['a', 'b'],
    records: ['1,5\t"2\n3"'],
  },
]) {
  test(`records of CSV are samples, and the header names their fields: ${name}`, async (context) => {
    const { texts, table } = await samplesOf(context, { [delimiter === ',' ? 'a.csv' : 'a.tsv']: text })
    assert.deepEqual(texts, records)
    assert.deepEqual(table.encodings, [{ format: 'csv', delimiter, columns }])
  })
}

test('any fields that are written by RFC 4180 come back, wherever windows end', async (context) => {
  const root = makeTestFolder(context)
  let run = 0
  const field = fc.stringMatching(/^[ab",\n\r]{0,6}$/)
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(field, field), { minLength: 1, maxLength: 12 }), async (rows) => {
      const folder = join(root, `${run++}`)
      mkdirSync(folder)
      const quote = (value: string) => `"${value.replaceAll('"', '""')}"`
      const text = [['one', 'two'], ...rows].map((row) => row.map(quote).join(',')).join('\r\n')
      writeFileSync(join(folder, 'a.csv'), text)
      const listed = await indexSamples(folder, { cacheFolder: undefined })
      const read = readAllSamples(listed).map((bytes) => parseRecord(String(bytes), ','))
      assert.deepEqual(read, rows)
    }),
    { numRuns: 200 },
  )
})

test('a quote that nothing closes is damage, with the byte where its record begins', async (context) => {
  const files = { 'a.csv': 'a,b\n1,2\n3,"4\n5,6,7\n' } // with even lines, the quote would be text
  await assert.rejects(samplesOf(context, files), {
    code: 'COPY_DAMAGED',
    message: /a\.csv is damaged at byte 8: a quote/,
  })
  const { texts, leftOut } = await samplesOf(context, files, { onDamage: 'skip' })
  assert.deepEqual([texts, leftOut.length], [['1,2'], 1])
})

test('each file has a header of its own', async (context) => {
  const { table } = await samplesOf(context, {
    'a.csv': 'a\n1\n2\n',
    'b.csv': 'b,c\n1,2\n',
    'c.csv': 'a\n3\n',
  })
  assert.deepEqual(
    [0, 1, 2, 3].map((sample) => table.encodingOf(sample).columns),
    [['a'], ['a'], ['b', 'c'], ['a']],
  )
  assert.equal(table.encodings.length, 2)
})

test('what a name does not tell can be said', async (context) => {
  const files = { 'a.txt': '{}\n[]\n' }
  assert.equal((await samplesOf(context, files)).texts.length, 1)
  assert.deepEqual((await samplesOf(context, files, { format: 'jsonl' })).texts, ['{}', '[]'])
  assert.deepEqual((await samplesOf(context, { 'a.jsonl': '{}\n[]\n' }, { format: 'files' })).texts, [
    '{}\n[]\n',
  ])
})

test('an index takes 20 bytes a line', async (context) => {
  const { table } = await samplesOf(context, { 'a.jsonl': '{}\n'.repeat(10_000) })
  assert.ok(table.bytes.length < 20 * 10_000 + 300, `${table.bytes.length}`)
})

for (const { name, text, rule, lines, leftOut } of [
  {
    name: 'cut off',
    text: '{"i":1}\n{"i":\n{"i":3}\n',
    lines: 2,
    leftOut: '1 record at byte 8: a line that is no JSON',
  },
  {
    name: 'of NULs',
    text: '{"i":1}\n{"i":2}\n\0\0\0\0',
    lines: 2,
    leftOut: '1 record at byte 16: a line that is no JSON',
  },
  {
    name: 'in another encoding',
    text: Buffer.from('{"i":"\xe9"}\n{"i":"\xe8"}\n{"i":1}\n', 'latin1'),
    lines: 1,
    leftOut: '2 records, the first at byte 0: text that is not UTF-8',
  },
  {
    name: 'wrong inside',
    text: '{"i" 1}\n{"i":2}\n',
    rule: 'skip' as const,
    lines: 1,
    leftOut: '1 record at byte 0: a line that is no JSON',
  },
])
  test(`lines of JSON ${name} are told with the list, and left out on request`, async (context) => {
    const { texts, leftOut: found } = await samplesOf(context, { 'a.jsonl': text }, { onDamage: 'skip' })
    assert.deepEqual([texts.length, found], [lines, [{ path: 'a.jsonl', reason: leftOut }]])
    if (rule !== 'skip')
      // else only parsing finds it
      await assert.rejects(samplesOf(context, { 'a.jsonl': text }), { code: 'COPY_DAMAGED' })
  })

test('JSON as Python writes it, and values that are no objects, are lines all the same', async (context) => {
  const lines = ['{"x": NaN, "y": -Infinity}', '[1, 2]', '"text"', '-1.5e3', 'true', '{"s": "\\"}"}']
  for (const onDamage of ['raise', 'skip'] as const)
    assert.deepEqual((await samplesOf(context, { 'a.jsonl': lines.join('\n') }, { onDamage })).texts, lines)
})

test('records of CSV with other fields than the header are left out on request', async (context) => {
  const files = { 'a.csv': 'a,b\n1,2\n3\n4,5,6\n7,8\n' }
  const { texts, leftOut } = await samplesOf(context, files, { onDamage: 'skip' })
  assert.deepEqual(texts, ['1,2', '7,8'])
  assert.deepEqual(leftOut, [
    { path: 'a.csv', reason: '2 records, the first at byte 8: 1 fields where the header has 2' },
  ])
})

for (const { name, bytes, message } of [
  {
    name: 'UTF-16',
    bytes: Buffer.from('\uFEFFa,b\n1,2\n', 'utf16le'),
    message: /UTF-16, and the feed reads UTF-8/,
  },
  {
    name: 'UTF-16 without a mark',
    bytes: Buffer.from('name,é\n1,2\n', 'utf16le'),
    message: /UTF-16, and the feed reads UTF-8/,
  },
  {
    name: 'UTF-16 of the other order',
    bytes: Buffer.from('name,é\n1,2\n', 'utf16le').swap16(),
    message: /UTF-16, and the feed reads UTF-8/,
  },
  { name: 'Latin-1', bytes: Buffer.from('a,b\nf\xfcr,2\n', 'latin1'), message: /text that is not UTF-8/ },
  { name: 'gzip', bytes: Buffer.from([0x1f, 0x8b, 8, 0]), message: /this is gzip, whatever its name says/ },
])
  test(`a CSV file in ${name} is refused by name`, async (context) => {
    await assert.rejects(samplesOf(context, { 'a.csv': bytes }), (error) => {
      return isDscError(error, 'COPY_DAMAGED') && message.test(error.message)
    })
  })

test('zero bytes in text are no sign of UTF-16', async (context) => {
  const { texts } = await samplesOf(context, { 'a.csv': 'a,b\n\0\0\0,\0\n' })
  assert.deepEqual(texts, ['\0\0\0,\0'])
})

test('a dialect that is told is not looked for', async (context) => {
  const files = { 'a.csv': '1;"x\n2;y\n' }
  const dialect = { delimiter: ';', quote: 'none', header: false } as const
  const { texts, table } = await samplesOf(context, files, { dialect })
  assert.deepEqual(texts, ['1;"x', '2;y'])
  const columns = ['column0', 'column1']
  assert.deepEqual(table.encodings, [{ format: 'csv', delimiter: ';', quotes: 'text', columns }])
})

for (const { name, text, delimiter, records } of [
  {
    name: 'with line feeds',
    text: 'a,b\n1,"x \\", \\"\ny"\n2,"C:\\\\"\n',
    delimiter: ',',
    records: ['1,"x \\", \\"\ny"', '2,"C:\\\\"'],
  },
  {
    name: 'between semicolons',
    text: 'a;b\n1;"x; \\"y\\""\n2;"z"\n',
    delimiter: ';',
    records: ['1;"x; \\"y\\""', '2;"z"'],
  },
])
  test(`records with escaped quotes are samples: ${name}`, async (context) => {
    const { texts, table } = await samplesOf(context, { 'a.csv': text }, { onDamage: 'skip' })
    assert.deepEqual(texts, records)
    assert.deepEqual(table.encodings, [{ format: 'csv', delimiter, quotes: 'escape', columns: ['a', 'b'] }])
  })
