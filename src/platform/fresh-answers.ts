import { BoundedMap } from '../model/bounded-map.js'

/** Keeps answers while they are fresh, for all who ask the same. A failure is forgotten at once. */
export class FreshAnswers<Answer> {
  readonly #answers: BoundedMap<string, Promise<Answer>>
  readonly #freshMs: number

  /** Keeps at most `most` answers, the newest, for `freshMs` each. */
  constructor({ freshMs, most }: { readonly freshMs: number; readonly most: number }) {
    this.#answers = new BoundedMap(most)
    this.#freshMs = freshMs
  }

  /** The fresh answer to a question, else that of `ask`. */
  get(question: string, ask: () => Promise<Answer>): Promise<Answer> {
    return this.#answers.getOrMake(question, () => {
      const answer = ask()
      const forget = () => {
        if (this.#answers.get(question) === answer) this.#answers.delete(question)
      }
      setTimeout(forget, this.#freshMs).unref()
      answer.catch(forget)
      return answer
    })
  }
}
