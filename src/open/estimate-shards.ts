import type { Surroundings } from '../cache/surroundings.js'
import { atEnd, closeAfter } from '../failure/closers.js'
import type { Dataset } from '../model/dataset.js'
import { endOfMember } from '../samples/formats/tar-members.js'
import { listShardSamples } from '../samples/listed-samples.js'
import { readFirstMembers } from '../samples/read-shard-members.js'
import { MIN_ASKED_BYTES, MIN_MEMBER_BYTES } from './list-arriving-shards.js'
import { openRangeReader, type RangeReader, type ReadObject } from './open-range-reader.js'

/** Number of members whose headers are read, and of shards that may be empty before one with members. */
const LOOKED_AT = 32

/** The likely contents of shards, judged by the first members of one. */
export interface ShardEstimate {
  readonly samples: number
  /** Number of headers that a feed would request; undefined: none, because they make up most of the shards. */
  readonly headers: number | undefined
}

/** Estimates the contents of shards from the first 32 members of the first non-empty one; all 0 without any. */
export async function estimateShards(
  context: Surroundings,
  dataset: Dataset,
  shards: readonly ReadObject[],
): Promise<ShardEstimate> {
  const source = await context.openSource(dataset)
  await using _ = atEnd(() => source.close())
  const { signal } = context
  const reader = await openRangeReader(source, { connections: 1, signal })
  const found = await closeAfter(findMembers(shards.slice(0, LOOKED_AT), reader), () => reader.close())
  if (found === undefined) return { samples: 0, headers: 0 }
  const { shard, members, last } = found
  const meanBytes = endOfMember(last) / members.length
  const totalBytes = shards.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const headers = Math.max(shards.length, Math.round(totalBytes / meanBytes))
  const contents = [{ members, damage: undefined }]
  const files = [{ path: shard.key, size: shard.sizeBytes }]
  const { table } = listShardSamples(files, contents, { onDamage: 'skip' })
  const isAsked = meanBytes >= MIN_MEMBER_BYTES && totalBytes >= shards.length * MIN_ASKED_BYTES
  return {
    samples: Math.round((headers * table.count) / members.length),
    headers: isAsked ? headers : undefined,
  }
}

/** The first members of the first of these shards that is neither empty nor damaged at its start. */
async function findMembers(shards: readonly ReadObject[], reader: RangeReader) {
  for (const shard of shards) {
    const read = (offset: number, length: number) => reader.read(shard, offset, length)
    const members = await readFirstMembers(shard.sizeBytes, read, LOOKED_AT)
    const last = members.at(-1)
    if (last !== undefined) return { shard, members, last }
  }
  return undefined
}
