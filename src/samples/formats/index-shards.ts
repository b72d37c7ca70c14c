import { closeSync, openSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, toBytes, toText } from '../byte-path.js'
import type { FolderFile, LeftOut } from '../plan/sample-files.js'
import { requireLength, tableFiles } from '../sample-table.js'
import { SampleTableBuilder } from '../sample-table-builder.js'
import type { FormatIndexOptions, IndexedSamples, IndexRequest, ShardFormat } from './format.js'
import { type MemberGroup, MemberGroups } from './group-members.js'
import { TarDamage, type TarMember, TarReader } from './tar-members.js'

/** A key has several members, or one that only tar can read: samples must be slices of their shards. */
export class NotSingle extends Error {}

/** A shard's readable members, in order, and the damage behind them, if any. */
export interface ShardMembers {
  readonly members: Iterable<TarMember>
  readonly damage: TarDamage | undefined
}

/** Some shards for a thread to index. */
export interface TarIndexJob {
  readonly request: Omit<IndexRequest, 'onProgress'>
  readonly format: ShardFormat
}

/** `table`: bytes in shared memory. `not-single`: these shards must be indexed as `tar`, and so must all others. */
export type TarIndexReply =
  | (Pick<IndexedSamples, 'damaged' | 'leftOut'> & { readonly kind: 'indexed'; readonly table: Uint8Array })
  | { readonly kind: 'not-single' }

/** The content of a shard from which samples are found. */
interface OpenShard {
  /** Throws TarDamage after the last readable one. */
  members(): Iterable<TarMember>
  /** CRC-32 of a range; 0 if the bytes are not here. */
  checksum(offset: number, length: number): number
  close(): void
}

/** How to make samples from shards; file numbers are those of the list of shards. */
interface IndexerOptions extends FormatIndexOptions {
  readonly open: (file: number) => OpenShard
  /** False if checksums are unknown, and for a part. */
  readonly hasFingerprint: boolean
}

/**
 * Lists the samples of shards in this thread. Throws NotSingle if they do not fit `format`. A `part` of a table gets no
 * fingerprint, because the whole has a different one.
 */
export function indexShardsAs(
  format: ShardFormat,
  { root, files: shards, ...options }: IndexRequest,
  extent: 'whole' | 'part' = 'whole',
): IndexedSamples {
  const open = (file: number) => openShardFile(`${root}/${shards[file]!.path}`, shards[file]!.size)
  return new ShardIndexer(format, { ...options, open, hasFingerprint: extent === 'whole' }).index(shards)
}

/** Like `index`, for shards that need not be here: it knows only their members, without checksums. */
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

/** Lists samples as single members if possible, otherwise as slices of their shards. */
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
  readonly #leftOut: LeftOut[] = []

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
    return { table, damaged: this.#damaged, leftOut: this.#leftOut }
  }

  #indexShard(file: number, shard: FolderFile): void {
    const opened = this.#options.open(file)
    const groups = new MemberGroups(toText(shard.path))
    try {
      for (const group of groups.of(opened.members())) this.#add(group, { file, shard, opened })
    } catch (error) {
      if (!(error instanceof TarDamage)) throw error
      const path = toText(shard.path)
      if (this.#options.onDamage === 'raise')
        throw new DscError('COPY_DAMAGED', `${path} is damaged at byte ${error.at}: ${error.message}`, {
          hint:
            error.remedy ?? 'fetch the shard again, or --on-error skip to feed what comes before the damage',
        })
      this.#damaged.push({ path, reason: `damaged from byte ${error.at} on: ${error.message}` })
    } finally {
      opened.close()
    }
    if (groups.leftOut) this.#leftOut.push(groups.leftOut)
  }

  #add(
    { key, first, last, count }: MemberGroup,
    from: { readonly file: number; readonly shard: FolderFile; readonly opened: OpenShard },
  ): void {
    const { file, shard, opened } = from
    if (this.#format === 'member' && (count > 1 || first.kind === 'sparse')) throw new NotSingle()
    const name = this.#format === 'member' ? first.name : key
    const offset = this.#format === 'member' ? first.dataAt : first.headerAt
    const length = last.dataAt + last.length - offset
    requireLength(() => `${toText(shard.path)}:${toText(name)}`, length)
    this.#samples.add({ name, file, offset, length, crc32: opened.checksum(offset, length) })
  }
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
