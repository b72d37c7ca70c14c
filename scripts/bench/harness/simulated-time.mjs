// Time that is simulated: events in their order, and weighted choices.

/** Events by time; equal ones in the order in which they were added. */
export class EventQueue {
  #heap = []
  #added = 0
  /** Time of the event that was called last. */
  now = 0

  add(at, call) {
    const heap = this.#heap
    const event = { at, order: this.#added++, call }
    let index = heap.push(event) - 1
    for (
      let parent = (index - 1) >> 1;
      index > 0 && isBefore(event, heap[parent]);
      parent = (index - 1) >> 1
    ) {
      heap[index] = heap[parent]
      index = parent
    }
    heap[index] = event
  }

  /** Until nothing more happens. */
  runAll() {
    while (this.#heap.length > 0) {
      const { at, call } = this.#take()
      this.now = at
      call()
    }
  }

  #take() {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    let index = 0
    for (let child = 1; child < heap.length; child = 2 * index + 1) {
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child += 1
      if (!isBefore(heap[child], last)) break
      heap[index] = heap[child]
      index = child
    }
    if (heap.length > 0) heap[index] = last
    return first
  }
}

function isBefore(one, other) {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}

/** The index of one of `weights`, by chance. */
export function pick(weights, random) {
  let left = random() * weights.reduce((sum, weight) => sum + weight, 0)
  for (const [index, weight] of weights.entries()) {
    left -= weight
    if (left < 0) return index
  }
  return weights.length - 1
}
