/** A map of limited size: beyond `maxEntries`, it drops the entry that was set longest ago. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #maxEntries: number

  /** `maxEntries` is at least 1. */
  constructor(maxEntries: number) {
    super()
    this.#maxEntries = maxEntries
  }

  override set(key: Key, value: Value): this {
    this.delete(key) // makes it the newest again
    if (this.size >= this.#maxEntries) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }

  /** Returns the value of a key, or makes it with `make` and keeps it unless it is undefined. */
  getOrMake(key: Key, make: () => Value): Value {
    const known = this.get(key)
    if (known !== undefined) return known
    const value = make()
    if (value !== undefined) this.set(key, value)
    return value
  }
}
