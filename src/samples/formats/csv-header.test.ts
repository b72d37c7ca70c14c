import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { makeTestFolder } from '../../testing/sample-folder.js'
import { indexSamples } from '../index-samples.js'
import { hasHeader, judgeFirstRecord } from './csv-header.js'

/** The record and those below it, of one file. */
const judge = (text: string) => judgeFirstRecord(text.split('\n').map((record) => record.split(',')))

for (const { name, text, shown } of [
  { name: 'numbers above numbers are data', text: '1,x\n2,y\n3,z', shown: false },
  { name: 'dates above dates are data', text: '2026-01-02,x\n2026-01-03,y', shown: false },
  { name: 'a word above numbers is a name', text: 'id,x\n2,y', shown: true },
  { name: 'a year and a word above words may be either', text: 'name,2019\na,b', shown: undefined },
  { name: 'all text may be either', text: 'x,y\na,b\nc,d', shown: undefined },
  {
    name: 'a missing value above numbers, beside a number, may be either',
    text: 'n/a,5\n1,6',
    shown: undefined,
  },
  { name: 'a missing value above numbers may be either', text: 'NaN,x\n1,y', shown: undefined },
  { name: 'an empty field above numbers may be either', text: ',x\n1,y', shown: undefined },
  { name: 'a missing value beside a name is no number', text: ',id\n1,2', shown: true },
  { name: 'numbers above numbers and missing values are data', text: '1,x\nnull,y\n3,z', shown: false },
  { name: 'a record alone may be either', text: '1,2', shown: undefined },
])
  test(`of a first record, ${name}`, () => {
    assert.equal(judge(text).isHeader, shown)
  })

for (const { name, text, sibling, header } of [
  { name: 'all text is a header', text: 'x,y\na,b', header: true },
  { name: 'text alone is a header', text: 'x,y', header: true },
  { name: 'a number alone is data', text: 'a,1', header: false },
  { name: 'numbers alone are data', text: '1,2', header: false },
  { name: 'a year above words is a header', text: 'name,2019\na,b', header: true },
  {
    name: 'all text beside a file without header is data',
    text: 'n/a,y\na,b',
    sibling: '1,x\n2,y',
    header: false,
  },
  {
    name: 'a missing value beside a file without header is data',
    text: 'n/a,5\n1,6',
    sibling: '1,5\n2,6',
    header: false,
  },
  { name: 'an unnamed index above numbers is a header', text: ',x\n0,a\n1,b', header: true },
  {
    name: 'the header of another file alone is a header',
    text: 'id,2019',
    sibling: 'id,2019\n1,x\n2,y',
    header: true,
  },
  {
    name: 'a number alone beside another header is data',
    text: '3,z',
    sibling: 'id,name\n1,x',
    header: false,
  },
])
  test(`of a first record that may be either, ${name}`, () => {
    assert.equal(hasHeader(judge(text), sibling === undefined ? undefined : judge(sibling)), header)
  })

for (const { name, files, rows } of [
  { name: 'a last record alone', files: { 'a.csv': '1,x\n2,y\n', 'b.csv': '3,z\n' }, rows: 3 },
  { name: 'a first record alone', files: { 'a.csv': '3,z\n', 'b.csv': '1,x\n2,y\n' }, rows: 3 },
  { name: 'a missing value', files: { 'a.csv': 'n/a,x\n1,y\n', 'b.csv': '2,z\n3,x\n' }, rows: 4 },
  { name: 'text alone', files: { 'a.csv': '1,x\n2,y\n', 'b.csv': 'n/a,z\n' }, rows: 3 },
  { name: 'another delimiter', files: { 'a.csv': '1;x\n2;y\n', 'b.csv': '1,5;z\n' }, rows: 3 },
  {
    name: 'the line of Excel that names the delimiter',
    files: { 'a.csv': 'sep=;\r\nid;name\r\n1;x,y\r\n2;z\r\n', 'b.csv': 'sep=;\r\nid;name\r\n3;x\r\n' },
    rows: 3,
  },
  { name: 'a header alone', files: { 'a.csv': 'id,2019\n', 'b.csv': 'id,2019\n1,x\n2,y\n' }, rows: 2 },
  { name: 'another table', files: { 'a.csv': '1,x\n2,y\n', 'b.csv': 'a,b,c\nd,e,f\n' }, rows: 3 },
  {
    name: 'a damaged file',
    files: { 'a.csv': '3,z\n', 'b.csv': '\x1f\u008b', 'c.csv': '1,x\n2,y\n' },
    rows: 3,
  },
])
  test(`files of one table are read alike: ${name}`, async (context) => {
    const root = makeTestFolder(context)
    for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text, 'latin1')
    const { table } = await indexSamples(root, { cacheFolder: undefined, onDamage: 'skip' })
    assert.equal(table.count, rows)
    const { columns } = table.encodings.at(0)!
    assert.equal(columns?.length, 2)
    const delimiters = table.encodings.flatMap(({ delimiter }) => delimiter ?? [])
    assert.equal(new Set(delimiters).size, 1)
  })
