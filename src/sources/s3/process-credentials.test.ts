import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { openSdkTarget } from './sdk-target.js'

const KEYS = { Version: 1, AccessKeyId: 'AKIA', SecretAccessKey: 'hush', SessionToken: 'token' }
const FUTURE = '2126-01-01T00:00:00Z'

/** The keys that the profile "work" gives, whose credential_process is this script. */
async function ask(context: TestContext, script: string, settings: Readonly<Record<string, string>> = {}) {
  const path = join(await temporaryDirectory(context), 'give-keys.sh')
  writeFileSync(path, script)
  const aws = {
    profile: 'work',
    settings: { credential_process: `sh ${path} --secret hush`, ...settings },
    region: 'eu-west-1',
    endpoint: undefined,
    isPathStyle: false,
    keys: undefined,
    isWebIdentity: false,
  }
  const what = 's3://flowers/'
  const dataset = { name: 'd', source: what, include: [], exclude: [] }
  const target = await openSdkTarget(dataset, {
    bucket: 'flowers',
    what,
    region: undefined,
    ca: undefined,
    aws,
  })
  context.after(() => target.close())
  return target.getCredentials()
}

test('credential_process gives the keys', async (context) => {
  const found = await ask(context, `echo '${JSON.stringify({ ...KEYS, Expiration: FUTURE })}'`)
  assert.deepEqual(found, {
    accessKeyId: 'AKIA',
    secretAccessKey: 'hush',
    sessionToken: 'token',
    expiresAtMs: Date.parse(FUTURE),
  })
})

for (const Expiration of [
  '2126-01-01T00:00:00+00:00',
  '2126-01-01T00:00:00+0000',
  '2126-01-01T00:00:00.123456Z',
  null,
  '',
])
  test(`credential_process may give the expiry as ${JSON.stringify(Expiration)}`, async (context) => {
    const found = await ask(context, `echo '${JSON.stringify({ ...KEYS, SessionToken: null, Expiration })}'`)
    assert.equal(found?.accessKeyId, 'AKIA')
    assert.equal(found?.expiresAtMs === undefined, !Expiration)
  })

for (const { what, script, says } of [
  {
    what: 'keys that have expired',
    script: `echo '${JSON.stringify({ ...KEYS, Expiration: '2020-01-02T03:04:05Z' })}'`,
    says: /: it gave credentials that expired at 2020-01-02T03:04:05\.000Z$/,
  },
  {
    what: 'a failure',
    script: 'echo one >&2; echo "log in first" >&2; exit 3',
    says: /: it exited with 3: log in first$/,
  },
  {
    what: 'a question',
    script: 'read -r answer || { echo "nobody answers" >&2; exit 1; }',
    says: /: it exited with 1: nobody answers$/,
  },
  { what: 'no JSON', script: 'echo hush', says: /: expected JSON with Version 1, .*, found another text$/ },
  { what: 'nothing', script: '', says: /, found nothing$/ },
  { what: 'another version', script: `echo '{"Version":2}'`, says: /, found another object$/ },
  {
    what: 'an invalid expiry',
    script: `echo '${JSON.stringify({ ...KEYS, Expiration: 'soon' })}'`,
    says: /, found another object$/,
  },
])
  test(`${what} of credential_process is told, with the program's name and no secret`, async (context) => {
    await assert.rejects(ask(context, script), (error: Error & { code?: string; hint?: string }) => {
      assert.equal(error.code, 'SOURCE_DENIED')
      assert.match(
        error.message,
        /^s3:\/\/flowers\/: no AWS credentials from "sh", the credential_process of the AWS profile "work": /,
      )
      assert.match(error.message, says)
      assert.ok(!`${error.message}${error.hint}`.includes('hush'))
      return true
    })
  })
