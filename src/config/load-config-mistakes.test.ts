import assert from 'node:assert/strict'
import { test } from 'node:test'
import { arrangeConfig, configFailureOf } from '../testing/config-home.js'

for (const { name, yaml, says } of [
  {
    name: 'an unknown key',
    yaml: 'cache:\n  maxDataset: 3\n',
    says: ':2:3: cache: unknown key maxDataset, did you mean maxDatasets?',
  },
  {
    name: 'a key like no other',
    yaml: 'zebra: 1\n',
    says: ':1:1: unknown key zebra, expected one of record, node, cache, datasets, agent, cluster, stage',
  },
  {
    name: 'an unknown key of a dataset',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    regoin: eu\n',
    says: ':4:5: datasets.a: unknown key regoin, did you mean region?',
  },
  {
    name: 'an unknown part of a format',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    format: { csv: { quotes: none } }\n',
    says: ':4:22: datasets.a.format.csv: unknown key quotes, did you mean quote?',
  },
  {
    name: 'a delimiter of two characters',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    format: { csv: { delimiter: ";;" } }\n',
    says: ':4:33: datasets.a.format.csv.delimiter: expected one ASCII character such as ";", found ";;"',
  },
  {
    name: 'a delimiter of several bytes',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    format: { csv: { delimiter: "→" } }\n',
    says: ':4:33: datasets.a.format.csv.delimiter: expected one ASCII character such as ";", found "→"',
  },
  {
    name: 'an unknown format',
    yaml: 'datasets:\n  a:\n    source: s3://bucket/\n    format: { jsonl: {} }\n',
    says: ':4:13: datasets.a.format: expected one of files, shards, jsonl, csv, tsv, parquet, mds, litdata, or {csv: {delimiter: ";", quote: none, header: false}}, found {"jsonl":{}}',
  },
  {
    name: 'a size without sense',
    yaml: 'cache:\n  minFree: lots\n',
    says: ':2:12: cache.minFree: expected a byte size such as 50GiB, 10GB or 4096, found "lots"',
  },
  {
    name: 'a list where keys belong',
    yaml: 'cache: [1]\n',
    says: ':1:8: cache: expected keys with values, found [1]',
  },
  {
    name: 'a long text where it does not belong',
    yaml: `cache:\n  minFree: ${'x'.repeat(500)}\n`,
    says: `:2:12: cache.minFree: expected a byte size such as 50GiB, 10GB or 4096, found "${'x'.repeat(228)}…`,
  },
  {
    name: 'a percentage out of range',
    yaml: 'cache:\n  maxPercent: 120\n',
    says: ':2:15: cache.maxPercent: expected a percentage above 0 and up to 100, such as 80, found 120',
  },
  {
    name: 'a share of nothing in words',
    yaml: 'cache:\n  maxPercent: 0.0%\n',
    says: ':2:15: cache.maxPercent: expected a percentage above 0 and up to 100, such as 80, found "0.0%"',
  },
  {
    name: 'a percentage as text out of range',
    yaml: 'cache:\n  maxPercent: 120%\n',
    says: ':2:15: cache.maxPercent: expected a percentage above 0 and up to 100, such as 80, found "120%"',
  },
  {
    name: 'a fraction of a dataset',
    yaml: 'cache: { maxDatasets: 1.5 }\n',
    says: ':1:23: cache.maxDatasets: expected a whole number from 1 to 1000000, found 1.5',
  },
  {
    name: 'a missing source',
    yaml: 'datasets:\n  a:\n    region: eu\n',
    says: ':2:3: datasets.a.source: expected a source such as s3://bucket/prefix/, hf://datasets/org/name or file:///folder/, found nothing',
  },
  {
    name: 'a source of another kind that stands alone',
    yaml: 'datasets:\n  a: ftp://x/\n',
    says: ':2:3: datasets.a.source: expected a source such as',
  },
  {
    name: 'a source of another kind',
    yaml: 'datasets:\n  a: { source: ftp://x/ }\n',
    says: ':2:16: datasets.a.source: ',
  },
  {
    name: 'a dataset name with a slash',
    yaml: 'datasets:\n  a/b: { source: s3://bucket/ }\n',
    says: ':2:8: datasets.a/b: ',
  },
  {
    name: 'a list where keys belong',
    yaml: '- 1\n',
    says: ':1:1: expected a mapping of keys to values, found [1]',
  },
  {
    name: 'a node name that YAML reads as a number',
    yaml: 'node: 12\n',
    says: ':1:7: node: expected the name of this node, in quotes if it is a number, found 12',
  },
  {
    name: 'a duration without a unit',
    yaml: 'stage: { stallTimeout: 30 }\n',
    says: ':1:24: stage.stallTimeout: expected a duration such as 90s, 24h or 1h30m, found 30',
  },
  {
    name: 'a time that no timer waits',
    yaml: 'stage: { stallTimeout: 30d }\n',
    says: ':1:24: stage.stallTimeout: expected at most 24d20h, found "30d"',
  },
  {
    name: 'an address without a port',
    yaml: 'agent:\n  listen: localhost\n',
    says: ':2:11: agent.listen: expected host:port such as 127.0.0.1:7070, port up to 65535, found "localhost"',
  },
  {
    name: 'a low-water mark above the limit',
    yaml: 'cache:\n  maxPercent: 50\n  lowWaterPercent: 60\n',
    says: ':3:20: cache.lowWaterPercent: expected at most maxPercent (50), found 60',
  },
  {
    name: 'shares of more than everything',
    yaml: 'cache:\n  shares: {group:vision: 60, user:ada: 50}\n',
    says: ':2:11: cache.shares: expected shares of at most 100% together, found 110%',
  },
  {
    name: 'a share of nobody',
    yaml: 'cache:\n  shares: {vision: 60}\n',
    says: ':2:20: cache.shares.vision: expected user:name, group:name, account:name or namespace:name, found "vision"',
  },
  {
    name: 'a share of less than one dataset',
    yaml: 'cache:\n  maxDatasets: 8\n  shares: {user:ada: 5}\n',
    says: ':3:22: cache.shares.user:ada: expected at least 12.5%, one of maxDatasets (8), found 5%',
  },
  { name: 'a key that stands twice', yaml: 'node: a\nnode: b\n', says: ':2:1: node is set twice, keep one' },
  { name: 'broken YAML', yaml: 'cache:\n  root: "x\n', says: ':3:1: Missing closing "quote' },
  { name: 'an alias of nothing', yaml: 'node: *x\n', says: ':1:7: no &x stands before *x' },
  {
    name: 'an alias inside of what it stands for',
    yaml: 'cache: &c\n  root: *c\n',
    says: ':2:9: *c stands inside of what it stands for',
  },
  { name: 'a merge of what has no keys', yaml: 'cache:\n  <<: 5\n', says: ': Merge sources must be maps' },
  {
    name: 'an alias that grows without bound',
    yaml: `a: &a [1, 2]\n${Array.from('bcdefghij', (name, i) => `${name}: &${name} [${`*${'abcdefghij'[i]}, `.repeat(9)}]\n`).join('')}`,
    says: ': Excessive alias count',
  },
  { name: 'an unknown tag', yaml: 'node: !env NODE\n', says: ':1:7: Unresolved tag: !env' },
]) {
  test(`loadConfig says where ${name} stands and what was expected`, async () => {
    const { file, options } = arrangeConfig(yaml)
    const message = await configFailureOf(options)
    assert.ok(message.startsWith(file + says), `${message}\ninstead of\n${file}${says}`)
  })
}

test('loadConfig tells every mistake of a file at once, in its order', async () => {
  const { options } = arrangeConfig('zebra: 1\ncache:\n  minFree: lots\n  rot: /x\n')
  assert.deepEqual(
    (await configFailureOf(options)).split('\n').map((line) => /:(\d+):\d+: /.exec(line)?.[1]),
    ['1', '3', '4'],
  )
})

test('loadConfig does not show the password of a record that it refuses', async () => {
  const { options } = arrangeConfig('record: mysql://user:hunter2@host/db\n')
  const message = await configFailureOf(options)
  assert.match(message, /:1: record: expected sqlite:.*found mysql:\/\/host\/db/)
  for (const record of [
    'host=127.0.0.1 port=1 password=hunter2',
    'password = hunter2  user=me',
    'sslmode=require dbname=dsc password=hunter2',
    'postgres:dsc:hunter2@h',
    'postgresql:/dsc:hunter2@h',
    'jdbc:postgresql://dsc:hunter2@h/db',
  ]) {
    const said = await configFailureOf({ ...options, environment: { DSC_RECORD: record } })
    assert.match(said, /^DSC_RECORD: expected sqlite:/, record)
    assert.doesNotMatch(said, /hunter2/, record)
  }
  assert.doesNotMatch(message, /hunter2/)
})

test('loadConfig does not show the password in a source that it refuses', async () => {
  const { options } = arrangeConfig('datasets: { a: { source: "s3://me:hunter2@bucket/" } }\n')
  assert.doesNotMatch(await configFailureOf(options), /hunter2/)
})

test('loadConfig names a file whose name is no file, whatever the system says of it', async () => {
  for (const explicitPath of ['x'.repeat(300), '/dev/null/x']) {
    const { options } = arrangeConfig(undefined, { explicitPath })
    assert.match(await configFailureOf(options), /--config names .*x, expected a file, found none/)
  }
})
