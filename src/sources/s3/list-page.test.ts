import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import { listenLocally } from '../../testing/listen-locally.js'
import type { OnRetry } from '../retry.js'
import { openS3Source } from './s3-source.js'

const PAGE =
  '<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>data/a</Key><Size>1</Size></Contents></ListBucketResult>'

/** Lists `s3://bucket/data/` from a fake server that answers with `answer`. */
async function listFrom(
  context: TestContext,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  onRetry?: OnRetry,
): Promise<readonly string[]> {
  const server = createServer(answer)
  await listenLocally(server, context)
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'k', AWS_SECRET_ACCESS_KEY: 's' })
  const source = openS3Source({
    name: 'd',
    source: 's3://bucket/data/',
    region: 'us-east-1',
    pathStyle: true,
    include: [],
    exclude: [],
    endpoint: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
  })
  try {
    const keys: string[] = []
    for await (const page of source.list({ onRetry })) keys.push(...page.map(({ key }) => key))
    return keys
  } finally {
    await source.close()
  }
}

for (const status of [301, 307, 400]) {
  test(`a listing that is answered with ${status} and another region is signed again for that region`, async (context) => {
    const scopes: (string | undefined)[] = []
    const keys = await listFrom(context, (request, response) => {
      scopes.push(/Credential=k\/\d+\/([^/]+)\//.exec(request.headers.authorization ?? '')?.[1])
      if (scopes.length === 1) response.writeHead(status, { 'x-amz-bucket-region': 'eu-west-1' }).end()
      else response.end(PAGE)
    })
    assert.deepEqual(keys, ['a'])
    assert.deepEqual(scopes, ['us-east-1', 'eu-west-1'])
  })
}

test('a bucket that is never at home is SOURCE_UNREACHABLE, naming its region', async (context) => {
  let requests = 0
  const listing = listFrom(context, (_, response) => {
    requests += 1
    response.writeHead(301, { 'x-amz-bucket-region': 'eu-west-1' }).end()
  })
  await assert.rejects(listing, { code: 'SOURCE_UNREACHABLE', hint: 'set region: eu-west-1' })
  assert.equal(requests, 2)
})

test('a listing that breaks off in the middle is requested again, and waiting jobs are told', async (context) => {
  let requests = 0
  const heard: unknown[] = []
  const keys = await listFrom(
    context,
    (_, response) => {
      requests += 1
      response.end(requests === 1 ? PAGE.slice(0, 80) : PAGE)
    },
    ({ code }, attemptsLeft) => heard.push([code, attemptsLeft]),
  )
  assert.deepEqual(keys, ['a'])
  assert.deepEqual(heard, [['SOURCE_TRUNCATED', 4]])
  assert.equal(requests, 2)
})

/** Answers like a server that only knows version 1 of ListObjects, three keys per page. */
function answerVersion1(
  request: IncomingMessage,
  response: ServerResponse,
  keys: readonly string[],
  head = '',
): void {
  const marker = new URL(request.url!, 'http://server').searchParams.get('marker') ?? ''
  const rest = keys.slice(keys.indexOf(marker) + 1)
  const page = rest.slice(0, 3).map((key) => `<Contents><Key>${key}</Key><Size>1</Size></Contents>`)
  const isTruncated = head || `<IsTruncated>${rest.length > 3}</IsTruncated>`
  response.end(`<ListBucketResult>${isTruncated}${page.join('')}</ListBucketResult>`)
}
const VERSION_1_KEYS = ['data/b', 'data/a', 'data/é', 'data/c', 'data/0', 'data/d', 'data/9', 'data/e']

test('a server that says there is more but not where is listed by markers', async (context) => {
  const keys = await listFrom(context, (request, response) =>
    answerVersion1(request, response, VERSION_1_KEYS),
  )
  assert.deepEqual(
    keys,
    VERSION_1_KEYS.map((key) => key.slice('data/'.length)),
  )
})

test('a page that does not say whether it is the last is not taken for it', async (context) => {
  const keys = await listFrom(context, (request, response) =>
    answerVersion1(request, response, VERSION_1_KEYS, ' '),
  )
  assert.equal(keys.length, VERSION_1_KEYS.length)
})

test('a page that names the next one is not the last, whatever it says', async (context) => {
  let requests = 0
  const keys = await listFrom(context, (_, response) => {
    requests += 1
    const next = requests === 1 ? '<NextContinuationToken>t</NextContinuationToken>' : ''
    response.end(
      PAGE.replace('</IsTruncated>', `</IsTruncated>${next}`).replace('data/a', `data/${requests}`),
    )
  })
  assert.deepEqual(keys, ['1', '2'])
})

test('a server that repeats its first page whatever the marker is SOURCE_TRUNCATED', async (context) => {
  const listing = listFrom(context, (_, response) => response.end(PAGE.replace('false', 'true')))
  await assert.rejects(listing, { code: 'SOURCE_TRUNCATED' })
})

test('the prefix is sent as it is, and a key that is not UTF-8 is named as the server’s mistake', async (context) => {
  const listing = listFrom(context, (request, response) => {
    assert.match(request.url ?? '', /^\/bucket\?encoding-type=url&list-type=2&prefix=data%2F$/)
    response.end(
      PAGE.replace('<IsTruncated>', '<EncodingType>url</EncodingType><IsTruncated>').replace(
        'data/a',
        'data/%ff',
      ),
    )
  })
  await assert.rejects(listing, { code: 'SOURCE_UNREACHABLE', message: /not UTF-8/ })
})
