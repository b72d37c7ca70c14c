// Objects for the datasets: node put-objects.mjs CHECKOUT ENDPOINT [LARGE_MIB]

import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const [checkout, endpoint, largeMib = '64'] = process.argv.slice(2)
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
for (const name of ['flowers', 'birds', 'bees'])
  for (let i = 0; i < 20; i++) await put(`${name}/${i % 4}/${i}.bin`, randomBytes(50_000))
for (let i = 0; i < Number(largeMib) / 8; i++) await put(`large/${i}.bin`, randomBytes(8 << 20))
console.log('put')
