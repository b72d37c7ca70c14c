/** The data that a reader of a copy waits for during its download. */
export interface ReaderStatus {
  /** The reader's own name; empty without one. */
  readonly name: string
  /** Objects that it announced it will use and has not looked at yet. */
  readonly ordered: number
  /** Number of objects that it waits for, and the keys of the first few. */
  readonly waits: number
  readonly waitsFor: readonly string[]
}
