import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, beforeEach, test } from 'node:test'
import type { Dataset } from '../../model/dataset.js'
import { readAwsSettings } from './aws-settings.js'
import { findPlainTarget } from './plain-target.js'
import { openSdkTarget } from './sdk-target.js'

const folder = mkdtempSync(join(tmpdir(), 'dsc-plain-'))
after(() => rmSync(folder, { recursive: true }))
let files = 0

beforeEach(() => {
  for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
  process.env.AWS_EC2_METADATA_DISABLED = 'true'
  configure({})
})

/** Sets the files of the AWS configuration under new names: the SDK caches the files it has read. */
function configure({ config = '', credentials = '' }: { config?: string; credentials?: string }): void {
  for (const [variable, text] of [
    ['AWS_CONFIG_FILE', config],
    ['AWS_SHARED_CREDENTIALS_FILE', credentials],
  ] as const) {
    process.env[variable] = join(folder, `${files++}`)
    writeFileSync(process.env[variable], text)
  }
}

const PLAIN = { endpoint: 'http://store:9000', region: 'eu-west-1', pathStyle: true, source: 's3://data/a/' }
const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'secret' }
const STATIC = 'aws_access_key_id = file-id\naws_secret_access_key = file-secret\n'

interface Case {
  readonly name: string
  readonly dataset?: Partial<Dataset>
  readonly environment?: Record<string, string>
  readonly config?: string
  readonly credentials?: string
  readonly bucket?: string
  readonly region?: string
}

function ask({ dataset, environment, config, credentials, bucket = 'data', region }: Case) {
  configure({ ...(config !== undefined && { config }), ...(credentials !== undefined && { credentials }) })
  Object.assign(process.env, environment)
  const whole = { name: 'd', include: [], exclude: [], ...PLAIN, ...dataset } as unknown as Dataset
  return {
    plain: async () => {
      const aws = await readAwsSettings(whole, process.env)
      return findPlainTarget(whole, { bucket, region, environment: process.env, aws })
    },
    sdk: async () => {
      const aws = await readAwsSettings(whole, process.env)
      return openSdkTarget(whole, { bucket, what: `s3://${bucket}/`, region, ca: undefined, aws })
    },
  }
}

const withFiles = { credentials: `[default]\n${STATIC}[work]\n${STATIC.replaceAll('file', 'work')}` }
const cases: readonly Case[] = [
  { name: 'keys of the environment', environment: KEYS },
  { name: 'a session token', environment: { ...KEYS, AWS_SESSION_TOKEN: 'token' } },
  { name: 'keys of the default profile', ...withFiles },
  { name: 'keys of the environment before those of the default profile', ...withFiles, environment: KEYS },
  { name: 'keys of a named profile', ...withFiles, dataset: { profile: 'work' } },
  {
    name: 'keys of the environment, which count before the profile that it names',
    ...withFiles,
    environment: { ...KEYS, AWS_PROFILE: 'work' },
  },
  { name: 'no keys for public data', dataset: { anonymous: true } },
  {
    name: 'the region of the environment',
    dataset: { region: '' },
    environment: { ...KEYS, AWS_REGION: 'r-1' },
  },
  {
    name: 'the region of the profile',
    dataset: { region: '' },
    config: '[default]\nregion = r-2\n',
    ...withFiles,
  },
  { name: 'the region that the bucket told', environment: KEYS, region: 'r-3' },
  { name: 'a server by its address', environment: KEYS, dataset: { endpoint: 'http://10.0.0.1/' } },
  { name: 'the usual port', environment: KEYS, dataset: { endpoint: 'https://Store.example:443' } },
]
for (const row of cases) {
  test(`the SDK finds the same target, with ${row.name}`, async () => {
    const { plain, sdk } = ask({ ...row, dataset: { ...row.dataset } })
    const found = await plain()
    assert.ok(found)
    const expected = await sdk()
    for (const name of ['origin', 'basePath', 'region'] as const) assert.equal(found[name], expected[name])
    const { expiresAtMs: _, ...keys } = (await expected.getCredentials()) ?? {}
    assert.deepEqual((await found.getCredentials()) ?? {}, keys)
    expected.close()
  })
}

const left: readonly Case[] = [
  { name: 'a bucket that may be a part of the host name', environment: KEYS, dataset: { pathStyle: false } },
  { name: 'Amazon’s own servers', environment: KEYS, dataset: { endpoint: '' } },
  { name: 'an endpoint with a path', environment: KEYS, dataset: { endpoint: 'http://store/base' } },
  { name: 'no region', environment: KEYS, dataset: { region: '' } },
  { name: 'a region that means another', environment: KEYS, dataset: { region: 'fips-us-east-1' } },
  { name: 'an access point', environment: KEYS, bucket: 'arn:aws:s3:us-east-1:1:accesspoint/a' },
  { name: 'a directory bucket', environment: KEYS, bucket: 'data--use1-az4--x-s3' },
  { name: 'no keys' },
  { name: 'keys that expire', environment: { ...KEYS, AWS_CREDENTIAL_EXPIRATION: '2026-01-01T00:00:00Z' } },
  {
    name: 'a profile that takes a role',
    environment: KEYS,
    config: '[default]\nrole_arn = arn:aws:iam::1:role/a\n',
  },
  { name: 'dual stack', environment: { ...KEYS, AWS_USE_DUALSTACK_ENDPOINT: 'true' } },
]
for (const row of left) {
  test(`the SDK is asked where there is ${row.name}`, async () => {
    assert.equal(await ask(row).plain(), undefined)
  })
}

test('a profile that does not exist is named, and half a pair of keys', async () => {
  await assert.rejects(ask({ name: '', environment: KEYS, dataset: { profile: 'none' } }).plain(), {
    code: 'CONFIG_INVALID',
    message: 'the AWS profile "none" does not exist',
  })
  delete process.env.AWS_SECRET_ACCESS_KEY
  await assert.rejects(ask({ name: '', environment: { AWS_ACCESS_KEY_ID: 'id' } }).plain(), {
    code: 'CONFIG_INVALID',
  })
})
