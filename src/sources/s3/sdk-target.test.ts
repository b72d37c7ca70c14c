import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openSdkTarget } from './sdk-target.js'

const aws = {
  profile: undefined,
  settings: {},
  region: 'eu-west-1',
  endpoint: undefined,
  isPathStyle: false,
  keys: { accessKeyId: 'key', secretAccessKey: 'secret' },
  isWebIdentity: false,
}

for (const { bucket, origin, basePath, region } of [
  {
    bucket: 'arn:aws:s3:us-west-2:123456789012:accesspoint/mine',
    origin: 'https://mine-123456789012.s3-accesspoint.us-west-2.amazonaws.com',
    basePath: '/',
    region: 'us-west-2',
  },
  {
    bucket: 'arn:aws:s3::123456789012:accesspoint/mfzwi23gnjvgw.mrap',
    origin: 'https://mfzwi23gnjvgw.mrap.accesspoint.s3-global.amazonaws.com',
    basePath: '/',
    region: '*',
  },
]) {
  test(`${bucket} is reached at ${origin}, signed for the region ${region}`, async (context) => {
    const what = `s3://${bucket}/`
    const dataset = { name: 'd', source: what, include: [], exclude: [] }
    const target = await openSdkTarget(dataset, { bucket, what, region: undefined, ca: undefined, aws })
    context.after(() => target.close())
    assert.deepEqual(
      { origin: target.origin, basePath: target.basePath, region: target.region, service: target.service },
      { origin, basePath, region, service: 's3' },
    )
  })
}
