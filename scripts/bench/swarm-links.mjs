// Links of nodes and a store, one up and one down for each, and the flows over them; for swarm-simulation.mjs.

/** Gives every flow the smaller of its equal shares of the two links that it crosses. Time is in seconds. */
export class Links {
  now = 0
  #events = new Heap()
  #rates
  #flows

  /** Rates in bytes per second; the store is the last node. */
  constructor(nodes, rate, storeRate) {
    this.#rates = [...Array.from({ length: nodes }, () => rate), storeRate]
    this.#flows = this.#rates.map(() => ({ up: new Set(), down: new Set() }))
  }

  /** Sends bytes, and calls `onEnd` when they are there. */
  send({ from, to, bytes, onEnd }) {
    const flow = { from, to, left: bytes, rate: 0, since: this.now, version: 0, onEnd }
    this.#flows[from].up.add(flow)
    this.#flows[to].down.add(flow)
    this.#shareAround(flow)
  }

  after(seconds, call) {
    this.#events.push(this.now + seconds, { call })
  }

  /** Until nothing more happens. */
  run() {
    for (let event = this.#events.pop(); event; event = this.#events.pop()) {
      const { call, flow, version } = event.value
      if (flow && flow.version !== version) continue // it has another rate since
      this.now = event.at
      if (call) call()
      else this.#end(flow)
    }
  }

  #end(flow) {
    this.#flows[flow.from].up.delete(flow)
    this.#flows[flow.to].down.delete(flow)
    this.#shareAround(flow)
    flow.onEnd()
  }

  #shareAround({ from, to }) {
    for (const flow of new Set([...this.#flows[from].up, ...this.#flows[to].down])) {
      const rate = Math.min(
        this.#rates[flow.from] / this.#flows[flow.from].up.size,
        this.#rates[flow.to] / this.#flows[flow.to].down.size,
      )
      if (rate === flow.rate) continue
      flow.left = Math.max(0, flow.left - flow.rate * (this.now - flow.since))
      flow.since = this.now
      flow.rate = rate
      flow.version += 1
      this.#events.push(this.now + flow.left / rate, { flow, version: flow.version })
    }
  }
}

/** Values by the time at which they are due. */
class Heap {
  #items = []

  push(at, value) {
    const items = this.#items
    items.push({ at, value })
    for (let index = items.length - 1; index > 0; ) {
      const parent = (index - 1) >> 1
      if (items[parent].at <= items[index].at) break
      this.#swap(parent, index)
      index = parent
    }
  }

  pop() {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (items.length === 0) return first
    items[0] = last
    for (let index = 0; ; ) {
      let least = index
      for (const child of [2 * index + 1, 2 * index + 2])
        if (child < items.length && items[child].at < items[least].at) least = child
      if (least === index) return first
      this.#swap(least, index)
      index = least
    }
  }

  #swap(one, other) {
    const items = this.#items
    ;[items[one], items[other]] = [items[other], items[one]]
  }
}
