import { closeSync, openSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { DscError, type describeFailure } from '../../failure/dsc-error.js'
import { type BytePath, toBytes, toText } from '../byte-path.js'
import type { FolderFile, LeftOut } from '../plan/sample-files.js'
import { requireLength, tableFiles } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import type { FormatIndexOptions, IndexedSamples, IndexRequest, ShardFormat } from './format.js'
import { TarDamage, type TarMember, TarReader } from './tar-members.js'

/** Members of one key that follow each other in one shard. */
interface Group {
  readonly key: BytePath
  readonly first: TarMember
  last: TarMember
  count: number
}

/** A key has several members, or one that only tar can read: samples are slices of their shards. */
export class NotSingle extends Error {}

/** A shard's members as far as they could be read, in their order, and what was wrong behind them. */
export interface ShardMembers {
  readonly members: Iterable<TarMember>
  readonly damage: TarDamage | undefined
}

/** Some shards that a thread is to index. */
export interface TarIndexJob {
  readonly request: Omit<IndexRequest, 'onProgress'>
  readonly format: ShardFormat
}

/** `table`: bytes in shared memory. `not-single`: these shards must be indexed as `tar`, and so must all others. */
export type TarIndexReply =
  | { readonly kind: 'indexed'; readonly table: Uint8Array; readonly damaged: readonly LeftOut[] }
  | { readonly kind: 'not-single' }
  | { readonly kind: 'failed'; readonly failure: ReturnType<typeof describeFailure> }
  | { readonly kind: 'broken'; readonly message: string }

/** What the samples of a shard are told from. */
interface OpenShard {
  /** Throws TarDamage behind the last one that can be read. */
  members(): Iterable<TarMember>
  /** CRC-32 of a range; 0 where the bytes are not here. */
  checksum(offset: number, length: number): number
  close(): void
}

/** How shards become samples; numbers are those of the list of shards. */
interface IndexerOptions extends FormatIndexOptions {
  readonly open: (file: number) => OpenShard
  /** Not where checksums are unknown, and of a part. */
  readonly hasFingerprint: boolean
}

/**
 * Lists the samples of shards in this thread. Throws NotSingle where they are none of `format`. As a `part` of a table
 * they get no fingerprint, for the whole has another one.
 */
export function indexShardsAs(
  format: ShardFormat,
  { root, files: shards, ...options }: IndexRequest,
  extent: 'whole' | 'part' = 'whole',
): IndexedSamples {
  const open = (file: number) => openShardFile(`${root}/${shards[file]!.path}`, shards[file]!.size)
  return new ShardIndexer(format, { ...options, open, hasFingerprint: extent === 'whole' }).index(shards)
}

/** As `index`, of shards that need not be here: only their members are known, and no checksums. */
export function listShards(
  shards: readonly FolderFile[],
  contents: readonly ShardMembers[],
  options: FormatIndexOptions,
): IndexedSamples {
  const open = (file: number): OpenShard => ({
    *members() {
      const { members, damage } = contents[file]!
      yield* members
      if (damage) throw damage
    },
    checksum: () => 0,
    close() {},
  })
  return eitherWay((format) =>
    new ShardIndexer(format, { ...options, open, hasFingerprint: false }).index(shards),
  )
}

function openShardFile(path: BytePath, sizeBytes: number): OpenShard {
  const fd = openSync(toBytes(path), 'r')
  const reader = new TarReader(fd, sizeBytes)
  return {
    members: () => reader.members(),
    checksum: (offset, length) => checksum(reader, offset, length),
    close: () => closeSync(fd),
  }
}

/** As what the samples can be listed: as single members, else as slices of their shards. */
export function eitherWay(indexAs: (format: ShardFormat) => IndexedSamples): IndexedSamples {
  try {
    return indexAs('member')
  } catch (error) {
    if (!(error instanceof NotSingle)) throw error
    return indexAs('tar')
  }
}

class ShardIndexer {
  readonly #format: ShardFormat
  readonly #options: IndexerOptions
  readonly #samples = new SampleTableBuilder()
  readonly #damaged: LeftOut[] = []

  constructor(format: ShardFormat, options: IndexerOptions) {
    this.#format = format
    this.#options = options
  }

  index(shards: readonly FolderFile[]): IndexedSamples {
    for (const [file, shard] of shards.entries()) {
      this.#options.onProgress?.(file, shards.length)
      this.#indexShard(file, shard)
    }
    const paths = shards.map(({ path }) => path)
    const table = this.#samples.build(tableFiles({ format: this.#format }, paths), {
      hasChecksums: this.#options.hasFingerprint,
    })
    return { table, damaged: this.#damaged }
  }

  #indexShard(file: number, shard: FolderFile): void {
    const opened = this.#options.open(file)
    try {
      for (const group of groupMembers(opened.members())) this.#add(group, { file, shard, opened })
    } catch (error) {
      if (!(error instanceof TarDamage)) throw error
      const path = toText(shard.path)
      if (this.#options.onDamage === 'raise')
        throw new DscError('COPY_DAMAGED', `${path} is damaged at byte ${error.at}: ${error.message}`, {
          hint: 'fetch the shard again, or --on-error skip to feed what comes before the damage',
        })
      this.#damaged.push({ path, reason: `damaged from byte ${error.at} on: ${error.message}` })
    } finally {
      opened.close()
    }
  }

  #add(
    { key, first, last, count }: Group,
    from: { readonly file: number; readonly shard: FolderFile; readonly opened: OpenShard },
  ): void {
    const { file, shard, opened } = from
    if (this.#format === 'member' && (count > 1 || first.isSparse)) throw new NotSingle()
    const name = this.#format === 'member' ? first.name : key
    const offset = this.#format === 'member' ? first.dataAt : first.headerAt
    const length = last.dataAt + last.length - offset
    requireLength(() => `${toText(shard.path)}:${toText(name)}`, length)
    this.#samples.add({ name, file, offset, length, crc32: opened.checksum(offset, length) })
  }
}

/** A group is told when the header behind it has been read; its bytes are then most likely still at hand. */
function* groupMembers(members: Iterable<TarMember>): Generator<Group> {
  let group: Group | undefined
  for (const member of members) {
    const key = keyOf(member.name)
    if (group?.key === key) {
      group.last = member
      group.count++
      continue
    }
    if (group) yield group
    group = { key, first: member, last: member, count: 1 }
  }
  if (group) yield group
}

/** A name up to the first dot of its last part. */
function keyOf(name: BytePath): BytePath {
  const dot = name.indexOf('.', name.lastIndexOf('/') + 1)
  return dot < 0 ? name : name.slice(0, dot)
}

function checksum(reader: TarReader, offset: number, length: number): number {
  let value = 0
  for (let done = 0; done < length; ) {
    const bytes = reader.bytes(offset + done, length - done)
    if (bytes.length === 0) throw new TarDamage(offset, 'the archive ends inside this sample')
    value = crc32(bytes, value)
    done += bytes.length
  }
  return value
}
