import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import type { Urgency } from '../../model/urgency.js'
import { planParts } from '../../proof/plan-parts.js'
import { type Need, OrderOfNeed } from '../arrivals/order-of-need.js'
import { PartedObject } from './parted-object.js'
import { Schedule, type ScheduledWork, type Work } from './schedule.js'
import type { Lane } from './task-lanes.js'

const ALL: readonly Lane[] = ['direct', 'awaited']
const DIRECT: readonly Lane[] = ['direct']

/** An object of a dataset: its size, and the size of its parts if it is large, in bytes. */
interface Shape {
  readonly sizeBytes: number
  readonly partBytes: number | null
}

function entryOf(id: number, shape: Shape): ManifestEntry {
  return { id, key: `${id}`, ...shape, etag: null, facts: null } as unknown as ManifestEntry
}

function openParts(entry: ManifestEntry): PartedObject {
  const parts = planParts(entry.sizeBytes, entry.partBytes ?? entry.sizeBytes)
  const finished = parts.map(() => undefined)
  const proof = { kind: 'size' } as const
  return new PartedObject({
    entry,
    object: {} as never,
    parts,
    proof,
    finished,
    bits: undefined,
    blockBytes: 1,
  })
}

/**
 * A download without bytes, and beside the schedule a naive list of what is begun, which bytes were handed out, and what
 * readers still wait for.
 */
class NaiveDownload {
  readonly schedule: Schedule
  readonly running: ScheduledWork[] = []
  readonly log: string[] = []
  readonly finished = new Set<number>()
  readonly awaited = new Set<string>()
  /** Whether objects ever stood aside because another node was fetching them. */
  hasStood = false
  isSpent = false
  readonly #need: OrderOfNeed<string>
  readonly #entries: readonly ManifestEntry[]
  #wanted: Need[] = []
  /** Objects handed out whole or to be opened; also those opened for a range. */
  readonly #begun = new Set<number>()
  readonly #touched = new Set<number>()
  readonly #bytes = new Map<number, Set<number>>()
  readonly #opened = new Map<number, PartedObject>()
  #nowMs = 0

  constructor(shapes: readonly Shape[]) {
    this.#entries = shapes.map((shape, index) => entryOf(index + 1, shape))
    this.#need = new OrderOfNeed(shapes.length, [])
    this.schedule = new Schedule({
      missing: this.#entries,
      entryOf: (id) => this.#entries[id - 1]!,
      need: this.#need,
      isAwaited: (key, offset) => this.awaited.has(`${key} ${offset}`),
      mayTakeParts: () => !this.isSpent,
      nowMs: () => (this.#nowMs += 400),
    })
  }

  want(reader: string, need: Need, urgency: Urgency): void {
    const id = typeof need === 'number' ? need : need.id
    if (typeof need !== 'number' && this.schedule.isWritten(id, need)) return
    if (this.#need.want(reader, need, urgency) === 'there' || urgency !== 'wanted') return
    this.#wanted.push(need)
    this.schedule.hurry(need)
  }

  order(reader: string, needs: readonly Need[]): void {
    this.#need.addOrder(reader, needs)
  }

  /** Takes what is next, and checks it against the list. */
  next(free: readonly Lane[]): ScheduledWork | undefined {
    this.hasStood ||= this.awaited.size > 0
    const untouched = this.#wanted.filter((need) => !this.#touched.has(idOf(need)))
    const next = this.schedule.next({ wanted: free, ordered: free, listed: free })
    if (next === undefined) {
      if (free === ALL) assert.deepEqual(untouched, [], 'what a reader waits for is handed out')
      return undefined
    }
    if (free === ALL && untouched.length > 0) assert.equal(next.urgency, 'wanted')
    if (next.urgency === 'listed' && next.work.kind !== 'portion' && !this.hasStood) {
      const { id } = next.work.entry
      for (const entry of this.#entries)
        assert.ok(
          entry.id >= id || this.#begun.has(entry.id) || this.finished.has(entry.id),
          'in their order',
        )
    }
    this.#handOut(next.work)
    this.running.push(next)
    return next
  }

  /** Ends running work number `which`; `isWrong`: an object that is complete by now does not match its source. */
  end(which: number, isWrong: boolean): void {
    const [ended] = this.running.splice(which % this.running.length, 1)
    const { work } = ended!
    if (work.kind === 'whole') this.#finish(work.entry.id)
    else if (work.kind === 'portion') this.#wrote(work, isWrong)
    else {
      const parted = this.#open(work.entry)
      if (work.kind === 'parts') this.schedule.add(parted, parted.missingParts)
    }
  }

  #wrote({ parted, portion }: Extract<Work, { kind: 'portion' }>, isWrong: boolean): void {
    const { id } = parted.entry
    parted.wrote(portion, '')
    for (const { need } of this.#need.wrote(id, (range) => this.schedule.isWritten(id, range)))
      this.#tell(need)
    if (parted.takeWritten(portion.part)) parted.finished[portion.part.number] = {} as never
    if (!parted.takeProof()) return
    if (isWrong && parted.mismatches === 0) {
      parted.mismatches += 1
      parted.restart()
      this.#bytes.delete(id)
      this.schedule.add(parted, parted.parts)
    } else this.#finish(id)
  }

  /** Ends everything, and checks that nothing is left and nobody waits. */
  drain(): void {
    this.isSpent = false
    this.awaited.clear()
    for (;;) {
      while (this.next(ALL));
      if (this.running.length === 0) break
      this.end(0, false)
    }
    assert.equal(this.finished.size, this.#entries.length, 'every object comes')
    assert.deepEqual(this.#wanted, [], 'everybody who waits is told')
  }

  #handOut(work: Work): void {
    const { id, sizeBytes } = work.kind === 'portion' ? work.parted.entry : work.entry
    assert.ok(!this.finished.has(id), 'nothing of a finished object is fetched')
    this.#touched.add(id)
    if (work.kind === 'open') return
    if (work.kind !== 'portion') {
      assert.ok(!this.#begun.has(id), 'an object is begun once')
      this.#begun.add(id)
      if (work.kind === 'parts') return
    }
    const bytes = this.#bytes.get(id) ?? new Set()
    this.#bytes.set(id, bytes)
    const { offset, length } = work.kind === 'portion' ? work.portion : { offset: 0, length: sizeBytes }
    if (work.kind === 'portion' && work.portion.isExtra) return // once more, for a reader
    for (let at = offset; at < offset + length; at++) {
      assert.ok(!bytes.has(at), `byte ${at} of ${id} is fetched once`)
      bytes.add(at)
    }
  }

  #open(entry: ManifestEntry): PartedObject {
    const known = this.#opened.get(entry.id)
    if (known) return known
    const parted = openParts(entry)
    this.#opened.set(entry.id, parted)
    this.schedule.opened(parted)
    return parted
  }

  #finish(id: number): void {
    this.finished.add(id)
    this.schedule.finish(id)
    for (const { need } of this.#need.arrived(id)) this.#tell(need)
  }

  #tell(need: Need): void {
    this.#wanted = this.#wanted.filter((each) => JSON.stringify(each) !== JSON.stringify(need))
  }
}

function idOf(need: Need): number {
  return typeof need === 'number' ? need : need.id
}

const shape: fc.Arbitrary<Shape> = fc.oneof(
  fc.record({ sizeBytes: fc.integer({ min: 1, max: 9 }), partBytes: fc.constant(null) }),
  fc.record({ sizeBytes: fc.integer({ min: 4, max: 16 }), partBytes: fc.integer({ min: 2, max: 6 }) }),
)
const pick = fc.nat(15)
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('want' as const),
      need: fc.tuple(pick, pick, pick, fc.boolean()),
      urgency: fc.constantFrom<Urgency>('wanted', 'wanted', 'ordered', 'listed'),
      reader: fc.constantFrom('a', 'b'),
      isOrder: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('next' as const), isFree: fc.boolean() }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('end' as const), which: pick, isWrong: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('spent' as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('await' as const), at: fc.tuple(pick, pick) }) },
)

test('a schedule hands out every byte once, and first what readers wait for, whatever they need and whatever fails', () => {
  const property = fc.property(
    fc.array(shape, { minLength: 1, maxLength: 6 }),
    fc.array(step, { maxLength: 60 }),
    (shapes, steps) => {
      const download = new NaiveDownload(shapes)
      for (const each of steps) {
        if (each.kind === 'next') download.next(each.isFree ? ALL : DIRECT)
        else if (each.kind === 'end') download.running.length > 0 && download.end(each.which, each.isWrong)
        else if (each.kind === 'spent') download.isSpent = !download.isSpent
        else if (each.kind === 'await')
          download.awaited.add(`${(each.at[0] % shapes.length) + 1} ${each.at[1]}`)
        else {
          const [at, from, to, isWhole] = each.need
          const { sizeBytes } = shapes[at % shapes.length]!
          const id = (at % shapes.length) + 1
          const offset = from % sizeBytes
          const need = isWhole ? id : { id, offset, length: 1 + (to % (sizeBytes - offset)) }
          if (each.isOrder) download.order(each.reader, [need])
          else download.want(each.reader, need, each.urgency)
        }
      }
      download.drain()
    },
  )
  fc.assert(property, { numRuns: 300 })
})

test('a hundred thousand ranges of one object are handed out in their order, and soon', () => {
  const count = 100_000
  const entry = entryOf(1, { sizeBytes: 2 * count, partBytes: 2 * count })
  const need = new OrderOfNeed<string>(1, [])
  need.addOrder(
    'feed',
    Array.from({ length: count }, (_, at) => ({ id: 1, offset: 2 * (count - 1 - at), length: 1 })),
  )
  const schedule = new Schedule({
    ...{ missing: [], entryOf: () => entry, need, isAwaited: () => false },
    ...{ mayTakeParts: () => true, nowMs: () => 0 },
  })
  const next = () => schedule.next({ wanted: ALL, ordered: ALL, listed: ALL })?.work
  const startMs = performance.now()
  assert.equal(next()?.kind, 'open')
  assert.equal(next(), undefined)
  schedule.opened(openParts(entry))
  for (let at = count - 1; at >= 0; at--) {
    const work = next()
    assert.equal(work?.kind === 'portion' && work.portion.offset, 2 * at)
  }
  assert.ok(performance.now() - startMs < 10_000, `${performance.now() - startMs} ms`)
})
