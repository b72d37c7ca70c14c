import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type CountingStore, startCountingStore } from './counting-store.js'

/** Keeps the AWS SDK from looking anywhere else. */
export const STORE_ENVIRONMENT = {
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  AWS_EC2_METADATA_DISABLED: 'true',
  AWS_CONFIG_FILE: '/dev/null',
  AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
}

const MEBIBYTE = 1024 * 1024

/** Small objects of about 100 kB and large ones of 40 MiB, which are downloaded in parts; random bytes. */
export function makeObjects(small: number, large: number): Map<string, Buffer> {
  const objects = new Map<string, Buffer>()
  for (let index = 0; index < small; index++) objects.set(`data/s${index}.bin`, randomBytes(100_000 + index))
  for (let index = 0; index < large; index++) objects.set(`data/l${index}.bin`, randomBytes(40 * MEBIBYTE))
  return objects
}

/** Serves objects as the dataset `flowers`. */
export async function makeStore(
  context: Pick<TestContext, 'after'>,
  objects: ReadonlyMap<string, Buffer>,
  options: Parameters<typeof startCountingStore>[1] = {},
): Promise<CountingStore & { readonly datasets: Record<string, unknown>; readonly totalBytes: number }> {
  const store = await startCountingStore(objects, options)
  context.after(() => store.close())
  const totalBytes = [...objects.values()].reduce((sum, body) => sum + body.length, 0)
  const flowers = {
    source: 's3://bucket/data/',
    endpoint: store.endpoint,
    region: 'us-east-1',
    pathStyle: true,
  }
  return { ...store, datasets: { flowers }, totalBytes }
}

/** Compares the staged files with the source, byte by byte. */
export async function assertSameFiles(path: string, objects: ReadonlyMap<string, Buffer>): Promise<void> {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')
  for (const [key, body] of objects) {
    assert.equal(digest(await readFile(join(path, key.slice('data/'.length)))), digest(body), key)
  }
}

/** A node's entry in the answer of `dsc prepare --nodes --json`. */
interface PreparedNode {
  readonly downloaded: { readonly origins: { readonly failed?: Readonly<Record<string, string>> } }
}

/**
 * How many times over nodes that staged side by side may have read the dataset, besides once: on a busy machine a node
 * can be silent for so long that another gives it up, and reads its share of the parts from the store.
 */
export function shareOfGivenUp(nodes: readonly PreparedNode[]): number {
  const givenUp = nodes.flatMap(({ downloaded }) => Object.keys(downloaded.origins.failed ?? {}))
  return givenUp.length / nodes.length
}
