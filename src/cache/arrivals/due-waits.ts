/** Of a reader's waits so many count from the oldest on: about a batch, and what arrives while the next one is read. */
const DUE_WAITS = 64

/** A place in the order of a reader's waits. */
export interface WaitTurn {
  /** Whether it is waited for now. */
  readonly isDue: boolean
  /** Resolves when it is; never, where it ended before. */
  readonly comesDue: Promise<void>
  /** It is over, whatever became of it. */
  end(): void
}

interface Turn {
  readonly number: number
  isDue: boolean
  readonly callDue: () => void
}

/**
 * Tells which of a reader's waits hold it up: those that are close behind the oldest. A reader that looks ahead waits
 * for hundreds of objects at once; were all of them fetched next, and at other nodes, too, the last of them would take
 * the links from the first.
 */
export class DueWaits {
  /** Those that are not over, oldest first. */
  readonly #turns = new Set<Turn>()
  /** Those of them that are not due yet, oldest first. */
  readonly #early = new Set<Turn>()
  #begun = 0

  /** Begins a wait, after all that were begun before. */
  begin(): WaitTurn {
    const { promise: comesDue, resolve: callDue } = Promise.withResolvers<void>()
    const turn: Turn = { number: this.#begun++, isDue: false, callDue }
    this.#turns.add(turn)
    this.#early.add(turn)
    this.#callDue()
    return {
      get isDue() {
        return turn.isDue
      },
      comesDue,
      end: () => {
        this.#turns.delete(turn)
        this.#early.delete(turn)
        this.#callDue()
      },
    }
  }

  #callDue(): void {
    const [oldest] = this.#turns
    for (const turn of this.#early) {
      if (turn.number >= oldest!.number + DUE_WAITS) break
      this.#early.delete(turn)
      turn.isDue = true
      turn.callDue()
    }
  }
}
