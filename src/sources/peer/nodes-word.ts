import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { doubtFacts, hasSourceProof, type ListedProof } from '../../proof/doubt-facts.js'
import type { ObjectFacts } from '../../proof/object-facts.js'
import type { InspectRequest } from '../source.js'
import type { PeerLocation } from './peer-home.js'

type AskedObject = Pick<InspectRequest, 'checksum' | 'signal'>

/** How far to believe other nodes about an object. */
export class NodesWord {
  readonly #trustsNodes: boolean
  readonly #source: string
  /** Whether the store was asked in vain: a node without a way to it stages from others, too. */
  #isStoreAway = false

  constructor({ trustsNodes, dataset }: Pick<PeerLocation, 'trustsNodes' | 'dataset'>) {
    this.#trustsNodes = trustsNodes
    this.#source = dataset.source
  }

  /** Whether bytes with a digest that a node has verified need no checksum of the source. */
  isEnough(object: AskedObject): boolean {
    return this.#trustsNodes || !hasSourceProof(this.#listed(object))
  }

  /** Facts that a node tells, without what it must not decide. */
  doubt(told: ObjectFacts, object: AskedObject): ObjectFacts {
    return this.#trustsNodes ? told : doubtFacts(told, this.#listed(object))
  }

  /** The facts of an object: the store's, unless a node's word is enough or the store cannot be asked. */
  async inspect(
    object: AskedObject,
    ask: {
      readonly askNodes: () => Promise<ObjectFacts | undefined>
      readonly askStore: () => Promise<ObjectFacts>
    },
  ): Promise<ObjectFacts> {
    if (this.isEnough(object) || object.checksum || this.#isStoreAway)
      return (await ask.askNodes()) ?? ask.askStore()
    try {
      return await ask.askStore()
    } catch (error) {
      throwIfStopped(object.signal)
      const told = await ask.askNodes()
      if (told === undefined) throw error
      this.#isStoreAway = true
      return told
    }
  }

  #listed({ checksum }: AskedObject): ListedProof {
    return { source: this.#source, checksum }
  }
}
