import assert from 'node:assert/strict'
import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { nameColumns, parseRecord, sniffDialect } from './csv-dialect.js'
import { judgeQuotes } from './csv-quotes.js'

const PLAIN = { delimiter: ',', quotes: 'enclose', hasComments: false, hasDelimiterLine: false }

for (const { name, head, usual = ',', dialect } of [
  { name: 'the usual delimiter', head: 'a,b\n1,2\n', dialect: {} },
  { name: 'semicolons, with commas in numbers', head: 'a;b\n1,5;2,5\n3;4\n', dialect: { delimiter: ';' } },
  { name: 'semicolons below a header of one', head: 'a;b\nx, y;2\n', dialect: { delimiter: ';' } },
  { name: 'bars', head: 'a|b|c\n1|2|3\n', dialect: { delimiter: '|' } },
  { name: 'tabs under the name of CSV', head: 'a\tb\n1\t2\n', dialect: { delimiter: '\t' } },
  { name: 'commas under the name of TSV', head: 'a,b\n1,2\n', usual: '\t', dialect: {} },
  { name: 'one column of text with commas', head: 'text\nhello, you\nnone\n', dialect: {} },
  { name: 'remarks', head: '# made by us\na,b\n1,2\n', dialect: { hasComments: true } },
  { name: 'a header that begins with a hash', head: '#a,b\n1,2\n', dialect: {} },
  { name: 'delimiters inside of quotes', head: 'a,b\n"x;y;z",2\n"1;2;3",4\n', dialect: {} },
  {
    name: 'the line of Excel that names it',
    head: 'sep=|\r\na;b|c\r\n1;2|3\r\n',
    dialect: { delimiter: '|', hasDelimiterLine: true },
  },
  { name: 'a column called sep=', head: 'sep=,b\n1,2\n', dialect: {} },
  { name: 'nothing', head: '', dialect: {} },
])
  test(`the dialect of a file is found: ${name}`, () => {
    const { first: _, ...found } = sniffDialect(head, { usual, quotes: 'enclose' })
    assert.deepEqual(found, { ...PLAIN, ...dialect })
  })

function judge(context: TestContext, text: string, delimiter: string) {
  const path = join(makeTestFolder(context), 'a')
  writeFileSync(path, text)
  const fd = openSync(path, 'r')
  try {
    return judgeQuotes(fd, Buffer.byteLength(text), delimiter)
  } finally {
    closeSync(fd)
  }
}

const MANY = 'x\ty\n'.repeat(400_000)

for (const { name, text, delimiter = '\t', quotes } of [
  { name: 'of Common Voice are text', text: 'a\tb\n"x\t1\ny\t2\nz"\t3\n', quotes: 'text' },
  { name: 'far below the first part of a file count', text: `a\tb\n${MANY}"x\t1\n${MANY}`, quotes: 'text' },
  { name: 'around fields enclose them', text: 'a\tb\n"x"\t"y"\n', quotes: 'enclose' },
  {
    name: 'around a tab and a line feed enclose them',
    text: 'a\tb\n"x\n1\t2"\t3\n4\t5\n',
    quotes: 'enclose',
  },
  { name: 'within fields are text either way', text: 'a\tb\n5" pipe\t1\n', quotes: 'enclose' },
  { name: 'that nothing closes are text', text: 'a,b\n"x,1\ny,2\n', delimiter: ',', quotes: 'text' },
  { name: 'with more text behind them are text', text: 'a,b\n"x" y,1\n', delimiter: ',', quotes: 'text' },
  {
    name: 'around line feeds in CSV enclose them',
    text: 'a,b\n"x,1\ny,2\nz",3\n',
    delimiter: ',',
    quotes: 'enclose',
  },
  { name: 'doubled inside of quotes enclose', text: 'a,b\n"x ""y""",1\n', delimiter: ',', quotes: 'enclose' },
  { name: 'of uneven lines enclose', text: 'a,b\n"x" y,1,2\n', delimiter: ',', quotes: 'enclose' },
  {
    name: 'behind a byte order mark count',
    text: '\uFEFF"a\tb\n1"\t2\n',
    quotes: 'text',
  },
  {
    name: 'behind a backslash are escaped',
    text: 'a,b\n1,"he said \\"hi\\" twice"\n',
    delimiter: ',',
    quotes: 'escape',
  },
  {
    name: 'behind a backslash and before a comma are escaped',
    text: 'a,b\n1,"x \\", y"\n2,"z"\n',
    delimiter: ',',
    quotes: 'escape',
  },
  {
    name: 'behind a backslash, and doubled ones, are escaped',
    text: 'a,b\n1,"x \\"y\\""\n2,"x ""y"""\n',
    delimiter: ',',
    quotes: 'escape',
  },
  {
    name: 'behind the backslash of a path enclose',
    text: 'a,b\n1,"C:\\"\n',
    delimiter: ',',
    quotes: 'enclose',
  },
  { name: 'in one column enclose', text: 'a\n"x\ny"\n', delimiter: ',', quotes: 'enclose' },
])
  test(`quotes ${name}`, (context) => {
    assert.equal(judge(context, text, delimiter), quotes)
  })

for (const { fields, hasNames = true, names } of [
  { fields: ['a', 'b'], names: ['a', 'b'] },
  { fields: ['a', 'a', 'a'], names: ['a', 'a_1', 'a_2'] },
  { fields: ['a', 'a', 'a_1'], names: ['a', 'a_2', 'a_1'] },
  { fields: ['', 'b', ' '], names: ['column0', 'b', 'column2'] },
  { fields: ['1', '2'], hasNames: false, names: ['column0', 'column1'] },
])
  test(`columns ${JSON.stringify(fields)} are named ${JSON.stringify(names)}`, () => {
    assert.deepEqual(nameColumns(fields, hasNames), names)
  })

for (const { record, fields } of [
  { record: '1,"he said \\"hi, you\\"",2', fields: ['1', 'he said "hi, you"', '2'] },
  { record: '"x ""y""",C:\\\\x', fields: ['x "y"', 'C:\\\\x'] },
  { record: '"C:\\new\\\\",""', fields: ['C:\\new\\', ''] },
  { record: '"a"b,', fields: ['ab', ''] },
])
  test(`a record with escaped quotes is taken apart: ${record}`, () => {
    assert.deepEqual(parseRecord(record, ',', 'escape'), fields)
  })
