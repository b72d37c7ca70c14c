// Objects for the datasets: node put-objects.mjs CHECKOUT ENDPOINT [LARGE_MIB]. Those of small ones are named by their
// digests, by which a pod knows wrong bytes. With "slow SECONDS..." instead: those of slow-source.mjs.

import { createHash, randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [checkout, endpoint, largeMib = '64', ...seconds] = process.argv.slice(2)
const require = createRequire(join(checkout, 'package.json'))
const { S3Client, PutObjectCommand } = require('@aws-sdk/client-s3')
const client = new S3Client({
  endpoint,
  region: 'us-east-1',
  forcePathStyle: true,
  credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  requestChecksumCalculation: 'WHEN_REQUIRED',
})
const put = (Key, Body) => client.send(new PutObjectCommand({ Bucket: 'ml-data', Key, Body }))
for (const each of seconds)
  for (let i = 0; i < 8; i++) await put(`slow-${each}/${i}.bin`, randomBytes(1 << 20))
if (largeMib === 'slow') process.exit(0)
for (const name of ['flowers', 'birds', 'bees', 'moths'])
  for (let i = 0; i < 20; i++) {
    const bytes = randomBytes(50_000)
    await put(`${name}/${i % 4}/${createHash('sha256').update(bytes).digest('hex')}.bin`, bytes)
  }
for (let i = 0; i < Number(largeMib) / 8; i++) await put(`large/${i}.bin`, randomBytes(8 << 20))
console.log('put')
