import { createReadStream } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CompleteMultipartUploadCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  PutBucketPolicyCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { IDLE_TIMEOUT_MS } from './listen-locally.js'

/** A real S3 server for tests: s3rver in this process, or the one in DSC_TEST_S3_ENDPOINT. */
export interface S3Server {
  /** `http://127.0.0.1:port`. */
  readonly endpoint: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** AWS_… variables that make the credential chain find only this server's keys. */
  readonly environment: Readonly<Record<string, string>>
  readonly client: S3Client
  /** Whether this is s3rver, which lists unsorted and lacks If-Match and checksums. */
  readonly isS3rver: boolean
  /** Makes a bucket with a unique name and returns the name. */
  makeBucket(): Promise<string>
  /** Lets everybody read the bucket without credentials. */
  makePublic(bucket: string): Promise<void>
  putObject(bucket: string, key: string, body: string | Uint8Array): Promise<void>
  /** Uploads in parts of `partBytes` (5 MiB or more, except the last). */
  putInParts(bucket: string, key: string, body: Buffer, partBytes: number): Promise<void>
  /** Uploads a file in parts of `partBytes`. */
  putFileInParts(bucket: string, key: string, path: string, partBytes: number): Promise<void>
  deleteObject(bucket: string, key: string): Promise<void>
  close(): Promise<void>
}

interface S3rver {
  readonly httpServer: Server
  run(): Promise<{ port: number }>
  close(): Promise<void>
}

let madeBuckets = 0

/** Starts s3rver on a free port of loopback, or connects to the server in DSC_TEST_S3_ENDPOINT. */
export async function startS3Server(): Promise<S3Server> {
  const external = process.env.DSC_TEST_S3_ENDPOINT
  const accessKeyId = (external && process.env.DSC_TEST_S3_ACCESS_KEY) || 'S3RVER'
  const secretAccessKey = (external && process.env.DSC_TEST_S3_SECRET_KEY) || 'S3RVER'
  const own = external ? undefined : await startS3rver()
  const endpoint = external ?? own!.endpoint
  const client = new S3Client({
    endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId, secretAccessKey },
    // s3rver lacks the trailing checksums that the SDK sends by default.
    requestChecksumCalculation: 'WHEN_REQUIRED',
  })
  return {
    endpoint,
    accessKeyId,
    secretAccessKey,
    environment: {
      AWS_ACCESS_KEY_ID: accessKeyId,
      AWS_SECRET_ACCESS_KEY: secretAccessKey,
      AWS_REGION: 'us-east-1',
      AWS_EC2_METADATA_DISABLED: 'true',
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    },
    client,
    isS3rver: own !== undefined,
    async makeBucket() {
      madeBuckets += 1
      const bucket = `dsc-test-${process.pid}-${Date.now().toString(36)}-${madeBuckets}`
      await client.send(new CreateBucketCommand({ Bucket: bucket }))
      return bucket
    },
    async makePublic(bucket) {
      if (own) return // s3rver checks no rights
      const resources = [`arn:aws:s3:::${bucket}`, `arn:aws:s3:::${bucket}/*`]
      const Statement = [
        { Effect: 'Allow', Principal: '*', Action: ['s3:ListBucket', 's3:GetObject'], Resource: resources },
      ]
      const Policy = JSON.stringify({ Version: '2012-10-17', Statement })
      await client.send(new PutBucketPolicyCommand({ Bucket: bucket, Policy }))
    },
    async putObject(bucket, key, body) {
      await client.send(new PutObjectCommand({ Bucket: bucket, Key: key, Body: Buffer.from(body) }))
    },
    async putInParts(bucket, key, body, partBytes) {
      await uploadParts(client, { Bucket: bucket, Key: key }, slices(body, partBytes))
    },
    async putFileInParts(bucket, key, path, partBytes) {
      const parts = createReadStream(path, { highWaterMark: partBytes }) as AsyncIterable<Buffer>
      await uploadParts(client, { Bucket: bucket, Key: key }, parts)
    },
    async deleteObject(bucket, key) {
      await client.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }))
    },
    async close() {
      client.destroy()
      await own?.close()
    },
  }
}

async function uploadParts(
  client: S3Client,
  object: { readonly Bucket: string; readonly Key: string },
  parts: Iterable<Buffer> | AsyncIterable<Buffer>,
): Promise<void> {
  const { UploadId } = await client.send(new CreateMultipartUploadCommand(object))
  const Parts: { PartNumber: number; ETag: string | undefined }[] = []
  for await (const Body of parts) {
    const PartNumber = Parts.length + 1
    const { ETag } = await client.send(new UploadPartCommand({ ...object, UploadId, PartNumber, Body }))
    Parts.push({ PartNumber, ETag })
  }
  await client.send(new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } }))
}

function* slices(body: Buffer, bytes: number): Generator<Buffer> {
  for (let offset = 0; offset < body.length; offset += bytes) yield body.subarray(offset, offset + bytes)
}

async function startS3rver(): Promise<{ endpoint: string; close(): Promise<void> }> {
  // @ts-expect-error the package has no types
  const { default: S3rver } = (await import('@20minutes/s3rver')) as {
    default: new (options: object) => S3rver
  }
  const directory = await mkdtemp(join(tmpdir(), 'dsc-s3rver-'))
  // It signs buckets without the SDK's final slash; other servers in `test:s3` do check signatures.
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    allowMismatchedSignatures: true,
  })
  const { port } = await server.run()
  server.httpServer.keepAliveTimeout = IDLE_TIMEOUT_MS
  return {
    endpoint: `http://127.0.0.1:${port}`,
    async close() {
      await server.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
