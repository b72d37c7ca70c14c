import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { readAwsSettings } from './aws-settings.js'

interface Row {
  readonly environment?: Readonly<Record<string, string>>
  readonly config?: string
  readonly endpoint?: string
}

/** Reads the settings with nothing of this machine's. */
async function read(context: TestContext, { environment = {}, config = '', endpoint }: Row) {
  const file = join(await temporaryDirectory(context), 'config')
  writeFileSync(file, config)
  const before = { ...process.env }
  context.after(() => {
    process.env = before
  })
  Object.assign(process.env, { AWS_CONFIG_FILE: file, AWS_SHARED_CREDENTIALS_FILE: `${file}-none` })
  const dataset = { name: 'd', source: 's3://b/', include: [], exclude: [], ...(endpoint && { endpoint }) }
  return readAwsSettings(dataset, environment)
}

const KEYS = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'hush' }

for (const { what, says, ...row } of [
  {
    what: 'AWS_ENDPOINT_URL without a scheme',
    environment: { AWS_ENDPOINT_URL: 'minio:9000' },
    says: 'AWS_ENDPOINT_URL: expected a URL such as http://127.0.0.1:9000, found "minio:9000"',
  },
  {
    what: 'AWS_ENDPOINT_URL_S3 with a host alone',
    environment: { AWS_ENDPOINT_URL_S3: 'minio', AWS_ENDPOINT_URL: 'http://other' },
    says: 'AWS_ENDPOINT_URL_S3: expected a URL such as http://127.0.0.1:9000, found "minio"',
  },
  {
    what: 'endpoint_url of a profile',
    config: '[default]\nendpoint_url = s3://bucket\n',
    says: 'endpoint_url of the AWS profile "default": expected a URL such as http://127.0.0.1:9000, found "s3://bucket"',
  },
  {
    what: 'endpoint_url of a service',
    config: '[default]\nservices = here\n[services here]\ns3 =\n  endpoint_url = http://\n',
    says: 'endpoint_url of s3 in [services here]: expected a URL such as http://127.0.0.1:9000, found "http://"',
  },
  {
    what: 'an endpoint of the dataset',
    endpoint: 'ada:hush@minio',
    says: 'endpoint: of the dataset: expected a URL such as http://127.0.0.1:9000, found "…@minio"',
  },
  {
    what: 'a line feed in an access key',
    environment: { ...KEYS, AWS_ACCESS_KEY_ID: 'id\n' },
    says: 'AWS_ACCESS_KEY_ID has U+000A as character 3 of 3, and only printable ASCII can be sent',
  },
  {
    what: 'a dash of an editor in a session token',
    environment: { ...KEYS, AWS_SESSION_TOKEN: 'to–ken' },
    says: 'AWS_SESSION_TOKEN has U+2013 as character 3 of 6, and only printable ASCII can be sent',
  },
  {
    what: 'a letter of no key in a profile',
    config: '[default]\naws_access_key_id = ï\naws_secret_access_key = hush\n',
    says: 'aws_access_key_id of the AWS profile "default" has U+00EF as character 1 of 1, and only printable ASCII can be sent',
  },
] satisfies readonly (Row & { readonly what: string; readonly says: string })[])
  test(`${what} is named before anything is sent`, async (context) => {
    await assert.rejects(read(context, row), { code: 'CONFIG_INVALID', message: says })
  })

test('a wrong key of a profile does not matter where the environment has keys', async (context) => {
  const config = '[default]\naws_access_key_id = ï\naws_secret_access_key = x\n'
  assert.equal((await read(context, { config, environment: KEYS })).keys?.accessKeyId, 'id')
})

test('an endpoint that the configuration says to ignore may be anything', async (context) => {
  const environment = { AWS_ENDPOINT_URL: 'minio:9000', AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' }
  assert.equal((await read(context, { environment })).endpoint, undefined)
})
