import { closeSync, openSync } from 'node:fs'
import { crc32 } from 'node:zlib'
import { DscError } from '../../failure/dsc-error.js'
import type { LeftOut } from '../plan/sample-files.js'
import { type BytePath, toBytes, toText } from './byte-path.js'
import type { ListedFile } from './list-folder.js'
import { requireLength, type SampleTable } from './sample-table.js'
import { SampleTableBuilder } from './sample-table-builder.js'
import { TarDamage, type TarMember, TarReader } from './tar-members.js'

/** What becomes of a damaged shard, and who hears how far the index is. */
export interface ShardIndexOptions {
  /** `raise`: a damaged shard is an error · `skip`: what comes before the damage is fed, and the rest told. */
  readonly onDamage: 'raise' | 'skip'
  readonly onProgress?: ((filesDone: number, filesTotal: number) => void) | undefined
}

interface IndexedShards {
  readonly table: SampleTable
  readonly damaged: readonly LeftOut[]
}

/** Members of one key that follow each other in one shard. */
interface Group {
  readonly key: BytePath
  readonly first: TarMember
  last: TarMember
  count: number
}

/** A key has several members, or one that only tar can read: samples are slices of their shards. */
class NotSingle extends Error {}

/**
 * Lists the samples of tar shards: members of one key (name up to the first dot of its last part) are one sample, as
 * in WebDataset; where every key has one member, samples are the members' contents.
 */
export function indexShards(
  root: BytePath,
  shards: readonly ListedFile[],
  options: ShardIndexOptions,
): IndexedShards {
  try {
    return new ShardIndexer(root, 'member', options).index(shards)
  } catch (error) {
    if (!(error instanceof NotSingle)) throw error
    return new ShardIndexer(root, 'tar', options).index(shards)
  }
}

class ShardIndexer {
  readonly #root: BytePath
  readonly #format: 'member' | 'tar'
  readonly #options: ShardIndexOptions
  readonly #samples = new SampleTableBuilder()
  readonly #damaged: LeftOut[] = []

  constructor(root: BytePath, format: 'member' | 'tar', options: ShardIndexOptions) {
    this.#root = root
    this.#format = format
    this.#options = options
  }

  index(shards: readonly ListedFile[]): IndexedShards {
    for (const [file, shard] of shards.entries()) {
      this.#options.onProgress?.(file, shards.length)
      this.#indexShard(file, shard)
    }
    const table = this.#samples.build(
      this.#format,
      shards.map(({ path }) => path),
    )
    return { table, damaged: this.#damaged }
  }

  #indexShard(file: number, shard: ListedFile): void {
    const fd = openSync(toBytes(`${this.#root}/${shard.path}`), 'r')
    try {
      const reader = new TarReader(fd, shard.size)
      for (const group of groupMembers(reader)) this.#add(group, { file, shard, reader })
    } catch (error) {
      if (!(error instanceof TarDamage)) throw error
      const path = toText(shard.path)
      if (this.#options.onDamage === 'raise')
        throw new DscError('COPY_DAMAGED', `${path} is damaged at byte ${error.at}: ${error.message}`, {
          hint: 'fetch the shard again, or --on-error skip to feed what comes before the damage',
        })
      this.#damaged.push({ path, reason: `damaged from byte ${error.at} on: ${error.message}` })
    } finally {
      closeSync(fd)
    }
  }

  #add(
    { key, first, last, count }: Group,
    from: { readonly file: number; readonly shard: ListedFile; readonly reader: TarReader },
  ): void {
    const { file, shard, reader } = from
    if (this.#format === 'member' && (count > 1 || first.isSparse)) throw new NotSingle()
    const name = this.#format === 'member' ? first.name : key
    const offset = this.#format === 'member' ? first.dataAt : first.headerAt
    const length = last.dataAt + last.length - offset
    requireLength(`${toText(shard.path)}:${toText(name)}`, length)
    this.#samples.add({ name, file, offset, length, crc32: checksum(reader, offset, length) })
  }
}

/** A group is told when the header behind it has been read; its bytes are then most likely still at hand. */
function* groupMembers(reader: TarReader): Generator<Group> {
  let group: Group | undefined
  for (const member of reader.members()) {
    const key = member.name.replace(/^(.*\/)?([^/.]*).*$/s, '$1$2')
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
