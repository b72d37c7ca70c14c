/** Number of a reader's waits, from the oldest on, that are due: about a batch, plus what arrives while it is read. */
const DUE_WAITS = 64

/** A place in the order of a reader's waits. */
export interface WaitTurn {
  /** Whether the reader waits for it now. */
  readonly isDue: boolean
  /** Resolves when it comes due; never, if it ends first. */
  readonly comesDue: Promise<void>
  /** Ends the wait, with any outcome. */
  end(): void
}

interface Turn {
  readonly number: number
  isDue: boolean
  readonly callDue: () => void
}

/**
 * Tells which of a reader's waits hold it up: those close behind the oldest. A reader that looks ahead waits for
 * hundreds of objects at once. If all of them were fetched next, from other nodes too, the last would take the links
 * from the first.
 */
export class DueWaits {
  /** Waits that have not ended, oldest first. */
  readonly #turns = new Set<Turn>()
  /** Those that are not due yet, oldest first. */
  readonly #early = new Set<Turn>()
  #begun = 0

  /** Starts a wait, behind all earlier ones. */
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
