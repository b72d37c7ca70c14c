import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { judgeBrokenLink } from '../plan/broken-link.js'
import { findSuspect, type Patience, type RankHealth } from '../plan/suspect.js'
import { type JoinMessage, type RankMessage, type RendezvousMessage, sendMessage } from './messages.js'

/** A rank that has arrived, and its message. */
export interface ArrivedRank {
  readonly socket: Socket
  readonly join: JoinMessage
}

/** One rank as the rendezvous sees it. */
interface Member extends ArrivedRank {
  readonly rank: number
  lastBeatMs: number
  beat: Extract<RankMessage, { kind: 'beat' }>
  readyStep: number
  hasLeft: boolean
}

/** A rank's place according to its own messages. */
type Place = Pick<Member['beat'], 'step' | 'bucket' | 'phase'>

/** A rank's report that it lost its connection to another. */
interface BrokenLink {
  readonly by: Member
  readonly other: Member
  readonly place: Place
  readonly reportedMs: number
  isOtherEndHeard: boolean
}

/** The ranks of one epoch, from the moment all are there until one is lost or all have left. */
export class Group {
  readonly #members: readonly Member[]
  readonly #patience: Patience
  readonly #nowMs: () => number
  readonly #brokenLinks: BrokenLink[] = []
  readonly #warned = new Set<number>()
  #committedStep = 0
  #isOver = false

  /** Numbers the ranks and sends each the list of all. */
  constructor(
    joined: readonly ArrivedRank[],
    options: { readonly epoch: number; readonly patience: Patience; readonly nowMs: () => number },
  ) {
    const { epoch, patience, nowMs } = options
    this.#patience = patience
    this.#nowMs = nowMs
    this.#members = inRankOrder(joined).map(({ socket, join }, rank) => ({
      socket,
      join,
      rank,
      lastBeatMs: nowMs(),
      beat: { kind: 'beat', step: join.committedSteps },
      readyStep: 0,
      hasLeft: false,
    }))
    const nonce = randomBytes(16).toString('hex')
    const peers = this.#members.map(({ rank, join }) => {
      const { host, port, committedSteps, hostKey, memory } = join
      return { rank, host, port, committedSteps, hostKey, memory }
    })
    for (const { socket, rank } of this.#members)
      sendMessage(socket, { kind: 'welcome', epoch, rank, nonce, peers })
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Handles a message of the rank at `socket`. */
  handle(socket: Socket, message: RankMessage): void {
    const member = this.#find(socket)
    if (!member || this.#isOver) return
    member.lastBeatMs = this.#nowMs()
    for (const link of this.#brokenLinks) link.isOtherEndHeard ||= link.other === member
    switch (message.kind) {
      case 'beat':
        member.beat = message
        break
      case 'ready':
        this.#commit(member, message.step)
        break
      case 'unreachable':
        this.#breakLink(member, message)
        break
      case 'abort':
        this.#isOver = true
        this.#broadcast({ kind: 'aborted', message: message.message }, socket)
        break
      case 'leave':
        member.hasLeft = true
        this.#broadcast(
          { kind: 'left', rank: member.rank, host: member.join.host, step: message.step },
          socket,
        )
        this.#isOver = this.#members.every(({ hasLeft }) => hasLeft)
        break
    }
  }

  /** Treats the end of a connection as a death, unless its rank said goodbye. */
  disconnect(socket: Socket): void {
    const member = this.#find(socket)
    if (member && !member.hasLeft) this.#lose(member, 'its connection to the rendezvous closed')
  }

  /** Gives up on links that broke. Warns about, or gives up on, a rank that is silent or makes no progress. */
  checkHealth(): void {
    for (const link of this.#brokenLinks) this.#judge(link)
    const suspicion = this.#isOver ? undefined : findSuspect(this.#measureHealth(), this.#patience)
    const member = this.#members[suspicion?.rank ?? -1]
    if (!suspicion || !member) {
      this.#warned.clear()
      return
    }
    const { rank, forMs, reason, kind } = suspicion
    if (kind === 'lost') this.#lose(member, `it ${reason} for ${(forMs / 1000).toFixed(0)} s`)
    else if (!this.#warned.has(rank)) {
      this.#warned.add(rank)
      this.#broadcast({ kind: 'suspect', rank, host: member.join.host, forMs, reason }, member.socket)
    }
  }

  #find(socket: Socket): Member | undefined {
    return this.#members.find((member) => member.socket === socket)
  }

  #broadcast(message: RendezvousMessage, except?: Socket): void {
    for (const { socket } of this.#members) if (socket !== except) sendMessage(socket, message)
  }

  /** Commits a step once all ranks are ready for it. */
  #commit(member: Member, step: number): void {
    member.readyStep = step
    if (step <= this.#committedStep || this.#members.some(({ readyStep }) => readyStep < step)) return
    this.#committedStep = step
    this.#broadcast({ kind: 'commit', step })
  }

  #breakLink(by: Member, { rank, step, bucket, phase }: Extract<RankMessage, { kind: 'unreachable' }>): void {
    const other = this.#members[rank]
    const place = { step, bucket, phase }
    if (!other) return
    this.#brokenLinks.push({ by, other, place, reportedMs: this.#nowMs(), isOtherEndHeard: false })
  }

  #lose({ rank, join, beat }: Member, reason: string, { step, bucket, phase }: Place = beat): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#broadcast({ kind: 'lost', rank, host: join.host, reason, step, bucket, phase })
  }

  #judge({ by, other, place, reportedMs, isOtherEndHeard }: BrokenLink): void {
    if (this.#isOver || by.hasLeft || other.hasLeft) return
    const verdict = judgeBrokenLink({ forMs: this.#nowMs() - reportedMs, isOtherEndHeard })
    if (verdict === 'rank')
      this.#lose(other, `rank ${by.rank} on ${by.join.host} lost its connection to it`, place)
    if (verdict !== 'link') return
    this.#isOver = true
    const [low, high] = by.rank < other.rank ? [by, other] : [other, by]
    const hosts: [string, string] = [low.join.host, high.join.host]
    this.#broadcast({ kind: 'linkLost', ranks: [low.rank, high.rank], hosts, ...place })
  }

  #measureHealth(): RankHealth[] {
    return this.#members
      .filter(({ hasLeft }) => !hasLeft)
      .map(({ rank, lastBeatMs, beat }) => {
        const silentMs = this.#nowMs() - lastBeatMs
        const { waitingFor, waitingMs = 0 } = beat
        const waiting =
          waitingFor === undefined ? undefined : { forRank: waitingFor, sinceMs: waitingMs + silentMs }
        return { rank, silentMs, waiting }
      })
  }
}

/**
 * A rank that asked for a number gets it; the others get the free ones, in order of arrival. If all asked, only the
 * order of their numbers counts: survivors of a larger job ask for the ranks they had.
 */
function inRankOrder(joined: readonly ArrivedRank[]): ArrivedRank[] {
  const unasked = joined.filter(({ join }) => join.rank === undefined)
  if (unasked.length === 0) return joined.toSorted((a, b) => a.join.rank! - b.join.rank!)
  const late = joined.filter(({ join }) => join.rank !== undefined && join.rank >= joined.length)
  const free = [...unasked, ...late]
  return joined.map((_, rank) => joined.find(({ join }) => join.rank === rank) ?? free.shift()!)
}
