import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOwnTarget } from './own-target.js'

const KEYS = { accessKeyId: 'AKIA', secretAccessKey: 'secret' }
const access = { scheme: 's3' as const, isPathStyle: false, getKeys: () => KEYS }

const ROWS: readonly {
  what: string
  own: object
  bucket?: string
  region?: string
  url: string
}[] = [
  { what: 'AWS', own: {}, url: 'https://flowers.s3.us-east-1.amazonaws.com/' },
  {
    what: "the user's region",
    own: { region: 'eu-west-1' },
    url: 'https://flowers.s3.eu-west-1.amazonaws.com/',
  },
  {
    what: 'the region that the bucket names',
    ...{ own: { region: 'eu-west-1' }, region: 'cn-north-1' },
    url: 'https://flowers.s3.cn-north-1.amazonaws.com.cn/',
  },
  {
    what: 'a bucket with a dot',
    own: {},
    bucket: 'my.flowers',
    url: 'https://s3.us-east-1.amazonaws.com/my.flowers/',
  },
  {
    what: 'a server',
    own: { endpoint: 'http://s3.lan:9000', isPathStyle: true },
    url: 'http://s3.lan:9000/flowers/',
  },
  {
    what: 'a server without a name, which has no hosts',
    own: { endpoint: 'http://10.1.2.3:9000' },
    url: 'http://10.1.2.3:9000/flowers/',
  },
  {
    what: 'an address of IPv6',
    own: { endpoint: 'http://[fd00::1]:9000' },
    url: 'http://[fd00::1]:9000/flowers/',
  },
  {
    what: 'a server behind a path',
    own: { endpoint: 'https://lab.example/s3/', isPathStyle: true },
    url: 'https://lab.example/s3/flowers/',
  },
  { what: 'a server of hosts', own: { endpoint: 'http://s3.lan:9000' }, url: 'http://flowers.s3.lan:9000/' },
]
for (const { what, own, bucket = 'flowers', region, url } of ROWS)
  test(`a bucket is read with a user's keys at ${what}`, async () => {
    const target = createOwnTarget({ ...access, ...own }, { bucket, region })
    assert.equal(target.origin + target.basePath, url)
    assert.deepEqual(await target.getCredentials(), KEYS)
  })

for (const { bucket = 'flowers', region } of [
  { bucket: 'arn:aws:s3:us-east-1:1:accesspoint/x' },
  { bucket: 'flowers--use1-az4--x-s3' },
  { region: 'x.evil.example/' },
  { region: 'evil.example#' },
])
  test(`${bucket} in ${region} is nothing to send a user's keys to`, () => {
    assert.throws(() => createOwnTarget(access, { bucket, region }), { code: 'CONFIG_INVALID' })
  })
