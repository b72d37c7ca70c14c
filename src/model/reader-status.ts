/** What a reader of an arriving copy waits for. */
export interface ReaderStatus {
  /** As it calls itself; empty where it does not. */
  readonly name: string
  /** Objects that it said it will use and that were not looked at yet. */
  readonly ordered: number
  /** Objects that it waits for, and the keys of the first few. */
  readonly waits: number
  readonly waitsFor: readonly string[]
}
