/** A map that forgets: the entry that was set longest ago goes when there would be more than `maxEntries`. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #maxEntries: number

  /** `maxEntries` is at least 1. */
  constructor(maxEntries: number) {
    super()
    this.#maxEntries = maxEntries
  }

  override set(key: Key, value: Value): this {
    this.delete(key) // it is the newest again
    if (this.size >= this.#maxEntries) this.delete(this.keys().next().value!)
    return super.set(key, value)
  }

  /** The value of a key; where it has none, `make` gives it, and it is kept unless it is undefined. */
  getOrMake(key: Key, make: () => Value): Value {
    const known = this.get(key)
    if (known !== undefined) return known
    const value = make()
    if (value !== undefined) this.set(key, value)
    return value
  }
}
