// node scripts/as-aws-cli.mjs [NAME …]: lists one bucket with the real AWS CLI and with dsc, in every environment of the
// table below, and compares what a server on this machine is asked: by which identity, for which region, service and
// host, and under which path. Needs the AWS CLI (AWS_CLI=… names it, default: aws) and a build. Exits with 1 where the
// two differ.
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
const AWS_CLI = process.env.AWS_CLI ?? 'aws'
const LISTING =
  '<?xml version="1.0"?><ListBucketResult><Name>bucket-one</Name><Prefix>d/</Prefix><KeyCount>1</KeyCount><IsTruncated>false</IsTruncated><Contents><Key>d/a</Key><Size>1</Size><ETag>"0cc175b9c0f1b6a831c399e269772661"</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents></ListBucketResult>'
const KEYS = { AWS_ACCESS_KEY_ID: 'AKENV', AWS_SECRET_ACCESS_KEY: 's' }
const FILE_KEYS = 'aws_access_key_id = AKFILE\naws_secret_access_key = s\n'
/** Version 1 of the AWS CLI knows no AWS_REGION. */
const REGION = { AWS_DEFAULT_REGION: 'eu-west-1' }

/** Answers every question that a client of S3, STS, a container's or a machine's credentials has. */
function answer(request, response, seen) {
  const url = new URL(request.url.replace(/^http:\/\/[^/]+/, ''), 'http://server')
  const host = (request.headers.host ?? '').replace(/:\d+$/, '')
  const reply = (status, body, headers = {}) => response.writeHead(status, headers).end(body)
  const future = new Date(Date.now() + 3_600_000).toISOString()
  const given = { AccessKeyId: 'AKCONTAINER', SecretAccessKey: 's', Token: 't', Expiration: future }
  if (url.pathname === '/container') return reply(200, JSON.stringify(given))
  if (url.pathname === '/latest/api/token')
    return reply(200, 'token', { 'x-aws-ec2-metadata-token-ttl-seconds': '60' })
  if (url.pathname === '/latest/meta-data/iam/security-credentials/') return reply(200, 'role')
  if (url.pathname.startsWith('/latest/meta-data/iam/'))
    return reply(
      200,
      JSON.stringify({ ...given, AccessKeyId: 'AKIMDS', Code: 'Success', LastUpdated: future }),
    )
  if (url.pathname.startsWith('/latest/meta-data/placement')) return reply(200, 'ap-south-1')
  if (request.method === 'POST') {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const action = /Action=(\w+)/.exec(body)?.[1]
      const result = `<Credentials><AccessKeyId>AK${action?.toUpperCase()}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>${future}</Expiration></Credentials>`
      reply(
        200,
        `<${action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><${action}Result>${result}</${action}Result></${action}Response>`,
        { 'content-type': 'text/xml' },
      )
    })
    return
  }
  const [, key, region, service] =
    /Credential=([^/]+)\/\d+\/([^/]+)\/([^/]+)\//.exec(request.headers.authorization ?? '') ?? []
  const token = request.headers['x-amz-security-token']
  const payer = request.headers['x-amz-request-payer']
  seen.push(
    [
      key ?? 'anonymous',
      region ?? '-',
      service ?? '-',
      token ? 'token' : '-',
      payer ?? '-',
      host,
      url.pathname.replace(/\/$/, ''),
    ].join(' '),
  )
  reply(200, LISTING, { 'content-type': 'application/xml' })
}

/**
 * The environments. `config`, `credentials`: the files of ~/.aws; `$P` is the server's port, `$H` the home folder.
 * `cli`, `dsc`: further words, and keys of the dataset.
 */
const ENVIRONMENTS = {
  'keys and AWS_REGION': { env: { ...KEYS, AWS_REGION: 'eu-west-1' }, version: 2 },
  'keys and AWS_DEFAULT_REGION': { env: { ...KEYS, ...REGION } },
  'keys and both regions': { env: { ...KEYS, ...REGION, AWS_REGION: 'eu-central-1' }, version: 2 },
  'keys, region of the default profile': { env: KEYS, config: '[default]\nregion = sa-east-1\n' },
  'keys without a region': { env: KEYS },
  'keys with a session token': { env: { ...KEYS, ...REGION, AWS_SESSION_TOKEN: 't' } },
  'keys with AWS_SECURITY_TOKEN': { env: { ...KEYS, ...REGION, AWS_SECURITY_TOKEN: 't' } },
  'credentials file': { env: REGION, credentials: `[default]\n${FILE_KEYS}` },
  'credentials file with a token': {
    env: REGION,
    credentials: `[default]\n${FILE_KEYS}aws_session_token = t\n`,
  },
  'keys in the config file': { env: {}, config: `[default]\nregion = eu-north-1\n${FILE_KEYS}` },
  'credentials before config': {
    ...{ env: REGION, credentials: `[default]\n${FILE_KEYS}` },
    config: '[default]\naws_access_key_id = AKCONFIG\naws_secret_access_key = s\n',
  },
  'keys before the file': { env: { ...KEYS, ...REGION }, credentials: `[default]\n${FILE_KEYS}` },
  AWS_PROFILE: {
    env: { AWS_PROFILE: 'p' },
    credentials: `[p]\n${FILE_KEYS}`,
    config: '[profile p]\nregion = eu-west-3\n',
  },
  AWS_DEFAULT_PROFILE: {
    env: { AWS_DEFAULT_PROFILE: 'p' },
    credentials: `[p]\n${FILE_KEYS}`,
    config: '[profile p]\nregion = eu-west-3\n',
  },
  'keys beside AWS_PROFILE': {
    env: { ...KEYS, AWS_PROFILE: 'p' },
    credentials: `[p]\n${FILE_KEYS}`,
    config: '[profile p]\nregion = eu-west-3\n',
  },
  'AWS_DEFAULT_REGION beside AWS_PROFILE': {
    env: { ...REGION, AWS_PROFILE: 'p' },
    credentials: `[p]\n${FILE_KEYS}`,
    config: '[profile p]\nregion = eu-west-3\n',
  },
  'a profile by name': {
    env: REGION,
    credentials: `[p]\n${FILE_KEYS}`,
    cli: ['--profile', 'p'],
    dsc: { profile: 'p' },
  },
  'a profile by name beside keys': {
    env: { ...KEYS, ...REGION },
    credentials: `[p]\n${FILE_KEYS}`,
    cli: ['--profile', 'p'],
    dsc: { profile: 'p' },
  },
  'a profile that is not there': { env: { ...REGION, AWS_PROFILE: 'nope' } },
  'a region by name': {
    env: { ...KEYS, ...REGION },
    cli: ['--region', 'us-west-2'],
    dsc: { region: 'us-west-2' },
  },
  'files named by variables': {
    env: { ...REGION, AWS_SHARED_CREDENTIALS_FILE: '$H/c', AWS_CONFIG_FILE: '$H/f' },
    files: { c: `[default]\n${FILE_KEYS}`, f: '[default]\nregion = eu-south-1\n' },
  },
  anonymous: { env: REGION, cli: ['--no-sign-request'], dsc: { anonymous: true } },
  'anonymous beside keys': {
    env: { ...KEYS, ...REGION },
    cli: ['--no-sign-request'],
    dsc: { anonymous: true },
  },
  'requester pays': {
    env: { ...KEYS, ...REGION },
    cli: ['--request-payer', 'requester'],
    dsc: { requesterPays: true },
  },
  AWS_ENDPOINT_URL: {
    env: { ...KEYS, ...REGION, AWS_ENDPOINT_URL: 'http://127.0.0.1:$P' },
    isEndpointFound: true,
  },
  AWS_ENDPOINT_URL_S3: {
    env: { ...KEYS, ...REGION, AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:$P' },
    isEndpointFound: true,
  },
  'AWS_ENDPOINT_URL_S3 before AWS_ENDPOINT_URL': {
    env: {
      ...KEYS,
      ...REGION,
      AWS_ENDPOINT_URL: 'http://127.0.0.1:1',
      AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:$P',
    },
    isEndpointFound: true,
  },
  'endpoint_url of a profile': {
    env: { ...KEYS, ...REGION },
    config: '[default]\nendpoint_url = http://127.0.0.1:$P\n',
    isEndpointFound: true,
  },
  'endpoint_url of services': {
    env: { ...KEYS, ...REGION },
    config: '[default]\nservices = local\n[services local]\ns3 =\n  endpoint_url = http://127.0.0.1:$P\n',
    isEndpointFound: true,
  },
  'ignored endpoint of a profile': {
    env: { ...KEYS, ...REGION, AWS_IGNORE_CONFIGURED_ENDPOINT_URLS: 'true' },
    config: '[default]\nendpoint_url = http://127.0.0.1:1\n',
  },
  'endpoint by host name': { env: { ...KEYS, ...REGION }, endpoint: 'http://localhost:$P' },
  'addressing_style path': {
    env: { ...KEYS, ...REGION },
    endpoint: 'http://localhost:$P',
    config: '[default]\ns3 =\n  addressing_style = path\n',
  },
  'addressing_style virtual': {
    env: { ...KEYS, ...REGION },
    endpoint: 'http://localhost:$P',
    config: '[default]\ns3 =\n  addressing_style = virtual\n',
    hosts: true,
  },
  credential_process: {
    env: REGION,
    config: '[default]\ncredential_process = $H/process\n',
    process: 'AKPROCESS',
  },
  'credential_process of a profile': {
    env: { ...REGION, AWS_PROFILE: 'p' },
    config: '[profile p]\ncredential_process = $H/process\n',
    process: 'AKPROCESS',
  },
  'keys before credential_process': {
    env: REGION,
    credentials: `[default]\n${FILE_KEYS}`,
    config: '[default]\ncredential_process = $H/process\n',
    process: 'AKPROCESS',
  },
  'a container’s credentials': {
    env: { ...REGION, AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://127.0.0.1:$P/container' },
  },
  'a container’s credentials with a token': {
    env: {
      ...REGION,
      AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://127.0.0.1:$P/container',
      AWS_CONTAINER_AUTHORIZATION_TOKEN: 'x',
    },
  },
  'a machine’s role': {
    env: {
      ...REGION,
      AWS_EC2_METADATA_DISABLED: 'false',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:$P/',
    },
  },
  'file before a machine’s role': {
    env: {
      ...REGION,
      AWS_EC2_METADATA_DISABLED: 'false',
      AWS_EC2_METADATA_SERVICE_ENDPOINT: 'http://127.0.0.1:$P/',
    },
    credentials: `[default]\n${FILE_KEYS}`,
  },
  'a role of a source profile': {
    env: { AWS_PROFILE: 'p', AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:$P' },
    ...{
      credentials: `[base]\n${FILE_KEYS}`,
      config:
        '[profile p]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n',
    },
  },
  'a role by the keys of the environment': {
    env: { ...KEYS, AWS_PROFILE: 'p', AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:$P' },
    config:
      '[profile p]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Environment\n',
  },
  'web identity': {
    env: {
      ...REGION,
      AWS_ROLE_ARN: 'arn:aws:iam::123456789012:role/r',
      AWS_WEB_IDENTITY_TOKEN_FILE: '$H/token',
      AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:$P',
    },
    files: { token: 'header.claims.signature' },
  },
  'web identity of a profile': {
    env: { AWS_PROFILE: 'p', AWS_ENDPOINT_URL_STS: 'http://127.0.0.1:$P' },
    ...{
      files: { token: 'header.claims.signature' },
      config:
        '[profile p]\nregion = eu-west-1\nrole_arn = arn:aws:iam::123456789012:role/r\nweb_identity_token_file = $H/token\n',
    },
  },
  HTTP_PROXY: {
    env: { ...KEYS, ...REGION, HTTP_PROXY: 'http://127.0.0.1:$P', http_proxy: 'http://127.0.0.1:$P' },
    endpoint: 'http://store.example',
  },
  NO_PROXY: {
    env: {
      ...KEYS,
      ...REGION,
      HTTP_PROXY: 'http://127.0.0.1:1',
      http_proxy: 'http://127.0.0.1:1',
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
    },
  },
  'no credentials at all': { env: REGION },
  'half a key': { env: { ...REGION, AWS_ACCESS_KEY_ID: 'AKENV' } },
}

/** Runs a command; resolves with its exit code and what it said. */
function run(words, options) {
  return new Promise((resolve) => {
    const child = spawn(words[0], words.slice(1), {
      ...options,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 60_000,
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        said += chunk
      })
    child.on('error', (error) => resolve({ code: 127, said: error.message }))
    child.on('close', (code) => resolve({ code, said }))
  })
}

async function compare(name, row, port, seen) {
  const home = mkdtempSync(join(tmpdir(), 'dsc-as-aws-'))
  const fill = (text) => text.replaceAll('$P', String(port)).replaceAll('$H', home)
  mkdirSync(join(home, '.aws'))
  const files = { '.aws/config': row.config, '.aws/credentials': row.credentials, ...row.files }
  for (const [path, text] of Object.entries(files))
    if (text !== undefined) writeFileSync(join(home, path), fill(text))
  if (row.process) {
    const given = { Version: 1, AccessKeyId: row.process, SecretAccessKey: 's' }
    writeFileSync(join(home, 'process'), `#!/bin/sh\necho '${JSON.stringify(given)}'\n`)
    chmodSync(join(home, 'process'), 0o755)
  }
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_PAGER: '',
    AWS_MAX_ATTEMPTS: '1',
    DSC_RETRY_FOR: '1s',
  }
  for (const [key, value] of Object.entries(row.env)) env[key] = fill(value)
  const endpoint = row.isEndpointFound ? undefined : fill(row.endpoint ?? 'http://127.0.0.1:$P')
  seen.length = 0
  const words = ['s3api', 'list-objects-v2', '--bucket', 'bucket-one', '--prefix', 'd/', ...(row.cli ?? [])]
  const cli = await run([AWS_CLI, ...words, ...(endpoint ? ['--endpoint-url', endpoint] : [])], {
    env,
    cwd: home,
  })
  const asked = cli.code === 0 ? [...new Set(seen)].join('; ') : 'refused'
  seen.length = 0
  const dataset = { source: 's3://bucket-one/d/', ...(endpoint && { endpoint }), ...row.dsc }
  writeFileSync(
    join(home, 'dsc.yaml'),
    JSON.stringify({ cache: { root: join(home, 'cache') }, datasets: { d: dataset } }),
  )
  const own = await run([process.execPath, join(ROOT, 'bin/dsc.js'), 'prepare', 'd', '--plan'], {
    env,
    cwd: home,
  })
  const found = own.code === 0 ? [...new Set(seen)].join('; ') : 'refused'
  rmSync(home, { recursive: true })
  const isSame = asked === found && !/internal error/.test(own.said)
  console.log(`${isSame ? 'same  ' : 'DIFFER'} ${name}: ${asked}`)
  if (!isSame)
    console.log(
      `         dsc: ${found}\n         ${(found === 'refused' ? own : cli).said.trim().split('\n').slice(0, 2).join('\n         ')}`,
    )
  return isSame
}

const version = await run([AWS_CLI, '--version'], { env: process.env })
if (version.code !== 0) {
  console.error(`no AWS CLI (${AWS_CLI}): AWS_CLI=/path/to/aws node scripts/as-aws-cli.mjs`)
  process.exit(2)
}
console.log(version.said.trim())
const seen = []
const server = createServer((request, response) => answer(request, response, seen)).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
const chosen = process.argv.slice(2)
const major = Number(/aws-cli\/(\d+)/.exec(version.said)?.[1])
const rows = Object.entries(ENVIRONMENTS).filter(
  ([name, row]) => (row.version ?? 1) <= major && (chosen.length === 0 || chosen.includes(name)),
)
let same = 0
for (const [name, row] of rows) if (await compare(name, row, server.address().port, seen)) same += 1
console.log(`${same} of ${rows.length} environments are the same`)
server.close()
process.exit(same === rows.length ? 0 : 1)
