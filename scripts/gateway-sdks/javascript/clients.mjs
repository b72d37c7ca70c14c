// Carries out what gateway-sdks.test.js asks, a line for each question, by the clients of JavaScript for S3: clients.mjs
// NAME ENDPOINT. The lines are those of clients.go.
import { createHash } from 'node:crypto'
import { createInterface } from 'node:readline'
import {
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  paginateListObjectsV2,
  S3Client,
} from '@aws-sdk/client-s3'
import { Client as MinioClient } from 'minio'

const [name, endpoint] = process.argv.slice(2)
const BODY_BYTES = 8 * 1024 * 1024
const PART_BYTES = 5 * 1024 * 1024
const keys = { accessKeyId: 'any', secretAccessKey: 'any' }

function openAws() {
  const sdk = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials: keys })
  const get = (of, span, match) =>
    sdk.send(new GetObjectCommand({ ...of, Range: span || undefined, IfMatch: match || undefined }))
  return {
    list: async ({ Bucket, Key }) => {
      const found = []
      for await (const page of paginateListObjectsV2({ client: sdk, pageSize: 7 }, { Bucket, Prefix: Key }))
        found.push(...(page.Contents ?? []).map((object) => object.Key))
      return found
    },
    head: async (of) => {
      const found = await sdk.send(new HeadObjectCommand(of))
      return ['', found.ContentLength, plain(found.ETag)]
    },
    get: async (of, span, match) => {
      const found = await get(of, span, match)
      return digest([await found.Body.transformToByteArray()], found.ETag)
    },
    parts: async (of) => {
      const { ContentLength: sizeBytes } = await sdk.send(new HeadObjectCommand(of))
      const spans = []
      for (let at = 0; at < sizeBytes; at += PART_BYTES)
        spans.push(`bytes=${at}-${Math.min(sizeBytes, at + PART_BYTES) - 1}`)
      const read = async (span) => (await get(of, span)).Body.transformToByteArray()
      return digest(await Promise.all(spans.map(read)))
    },
    put: (of) => sdk.send(new PutObjectCommand({ ...of, Body: Buffer.alloc(BODY_BYTES) })),
  }
}

function openMinio() {
  const { hostname, port } = new URL(endpoint)
  const { accessKeyId: accessKey, secretAccessKey: secretKey } = keys
  const sdk = new MinioClient({ endPoint: hostname, port: Number(port), useSSL: false, accessKey, secretKey })
  return {
    list: async ({ Bucket, Key }) => {
      const found = await sdk.listObjectsV2(Bucket, Key, true).toArray()
      return found.map((object) => object.name)
    },
    head: async ({ Bucket, Key }) => {
      const { size, etag } = await sdk.statObject(Bucket, Key)
      return ['', size, etag]
    },
    get: async ({ Bucket, Key }, span) => {
      const [first, last] = (/=(\d+)-(\d+)/.exec(span) ?? [0, 0, -1]).slice(1).map(Number)
      const body = await sdk.getPartialObject(Bucket, Key, first, last - first + 1)
      return digest(await body.toArray(), body.headers?.etag)
    },
    parts: async ({ Bucket, Key }) => {
      const { size } = await sdk.statObject(Bucket, Key)
      const read = async (at) => (await sdk.getPartialObject(Bucket, Key, at, Math.ceil(size / 2))).toArray()
      return digest((await Promise.all([0, Math.ceil(size / 2)].map(read))).flat())
    },
    put: ({ Bucket, Key }) => sdk.putObject(Bucket, Key, Buffer.alloc(BODY_BYTES), BODY_BYTES),
  }
}

function digest(chunks, etag = '') {
  const body = Buffer.concat(chunks)
  return [createHash('sha256').update(body).digest('hex'), body.length, plain(etag)]
}

function plain(etag) {
  return etag.replaceAll('"', '')
}

const client = { 'aws-sdk-js': openAws, 'minio-js': openMinio }[name]()
for await (const line of createInterface({ input: process.stdin })) {
  const [verb, Bucket, Key, span, match] = line.split('\t')
  try {
    console.log(['ok', ...(await client[verb]({ Bucket, Key }, span, match))].join('\t'))
  } catch (error) {
    const status = error.$metadata?.httpStatusCode ?? 0
    console.log(['error', error.code ?? error.name, status, error.message.replaceAll(/\s/g, ' ')].join('\t'))
  }
}
