import { DscError } from '../../failure/dsc-error.js'
import { type BytePath, toText } from '../byte-path.js'
import type { LeftOut } from '../plan/sample-files.js'
import type { TarMember } from './tar-members.js'

/** Consecutive members of one key in one shard. */
export interface MemberGroup {
  readonly key: BytePath
  readonly first: TarMember
  readonly last: TarMember
  readonly count: number
}

/** Names of left-out members to show per shard. */
const SHOWN_NAMES = 3

/**
 * Puts the members of one shard together as WebDataset does: the key is the name up to the first dot of its last part,
 * the rest in lower case is the field. What WebDataset passes over is left out and counted. What it would feed with
 * parts missing or mixed up is refused by name, because a sample is one slice of its shard:
 *
 * | members | WebDataset | dsc |
 * |---|---|---|
 * | `._0.jpg`, `README`, `__meta__/…`, symbolic links | passed over | left out, noted |
 * | one key in two places | two samples with parts missing | refused: sort the shard |
 * | one field twice in a key, `0.JPG` beside `0.jpg` | refused | refused |
 * | a hard link | passed over: the sample lacks it | refused: its bytes are elsewhere in the shard |
 */
export class MemberGroups {
  readonly #shard: string
  readonly #seen = new Set<BytePath>()
  readonly #leftOutNames: string[] = []
  #leftOutCount = 0
  #fields: string[] = []

  /** `shard`: its path, for messages. */
  constructor(shard: string) {
    this.#shard = shard
  }

  /** Yields a group when the header behind it has been read; its bytes are then most likely still buffered. */
  *of(members: Iterable<TarMember>): Generator<MemberGroup> {
    let group: (MemberGroup & { last: TarMember; count: number }) | undefined
    for (const member of members) {
      const dot = findFirstDot(member.name)
      if (dot < 0 || member.kind === 'symbolic-link' || META.test(member.name)) {
        this.#leave(member)
        continue
      }
      const key = member.name.slice(0, dot)
      this.#requireContents(member)
      if (group?.key === key) {
        this.#addField(member, dot)
        group.last = member
        group.count++
        continue
      }
      if (group) yield group
      this.#requireNew(key, member)
      this.#fields = []
      this.#addField(member, dot)
      group = { key, first: member, last: member, count: 1 }
    }
    if (group) yield group
  }

  /** Members that belong to no sample; undefined: none. */
  get leftOut(): LeftOut | undefined {
    if (this.#leftOutCount === 0) return undefined
    const names = this.#leftOutNames.join(', ') + (this.#leftOutCount > SHOWN_NAMES ? ', …' : '')
    const members = this.#leftOutCount === 1 ? '1 member' : `${this.#leftOutCount} members`
    return { path: this.#shard, reason: `${members} without a sample's name: ${names}` }
  }

  #leave({ name }: TarMember): void {
    if (this.#leftOutCount++ < SHOWN_NAMES) this.#leftOutNames.push(toText(name))
  }

  #requireContents({ kind, name }: TarMember): void {
    if (kind !== 'hard-link') return
    throw new DscError(
      'USAGE',
      `${this.#shard}: ${toText(name)} is a hard link, whose bytes lie in another member`,
      { hint: 'write the shard again with tar --hard-dereference --sort=name' },
    )
  }

  #requireNew(key: BytePath, { name }: TarMember): void {
    if (!this.#seen.has(key)) {
      this.#seen.add(key)
      return
    }
    throw new DscError(
      'USAGE',
      `${this.#shard}: ${toText(name)} lies apart from other members of the key ${toText(key)}, so they are no slice`,
      { hint: 'write the shard again in the order of its keys: tar --sort=name' },
    )
  }

  #addField({ name }: TarMember, dot: number): void {
    const field = name.slice(dot + 1).toLowerCase()
    if (!this.#fields.includes(field)) {
      this.#fields.push(field)
      return
    }
    throw new DscError('USAGE', `${this.#shard}: ${toText(name)} gives its sample the field ${field} twice`, {
      hint: 'write the shard again with one member of each extension per key',
    })
  }
}

/** Metadata of WebDataset's own. */
const META = /^__[^/]*__($|\/)/

/** Index of the dot behind the key; −1 for a name without a key or without an extension. */
function findFirstDot(name: BytePath): number {
  const start = name.lastIndexOf('/') + 1
  const dot = name.indexOf('.', start)
  return dot === start ? -1 : dot
}
