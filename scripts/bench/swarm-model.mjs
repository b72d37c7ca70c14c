// A swarm as a model of links, with the product's own choice of who takes which part from whom: nothing but the links
// costs time. --scale as for swarm, to hold the model against a run of the same size. --shapes: large (in
// parts, swarms of --nodes), small (whole files, swarms of --small-nodes).
import { FULL } from '../../dist/agent/copies/send-room.js'
import { planPassing, rankOwners } from '../../dist/policy/placement.js'
import { planSharedPartBytes } from '../../dist/proof/plan-parts.js'
import { EventQueue } from './harness/simulated-time.mjs'
import { count } from './harness/tables.mjs'

const LARGE = { files: 8, bytes: 32 * 1024 ** 2 }
const SMALL = { files: 5000, bytes: 50 * 1024 }
/** Between the last byte of a part and the first that is passed on: proof, manifest, a look at it. */
const HOP_SECONDS = 0.15
/** Requests that a node has under way for what it waits for elsewhere. */
const MOST_AWAITED = 51
/** What a node has under way from the store: two parts, or what arrives in this time, at least so much. */
const AHEAD = { parts: 2, seconds: 0.5, bytes: 1024 ** 2 }
const FROM_STORE = -1

export const benchmark = {
  page: 'swarm.md',
  options: {
    nodes: '32,1024,10000',
    'small-nodes': '32',
    shapes: 'large,small',
    megabits: 25,
    'store-megabits': 200,
    scale: 1,
  },
  smoke: { nodes: '4,8', 'small-nodes': '4', scale: 0.05 },
  run(bench) {
    const { megabits, 'store-megabits': storeMegabits, scale, nodes, 'small-nodes': smallNodes } = bench.given
    const speeds = { rate: (megabits * 1e6) / 8, storeRate: (storeMegabits * 1e6) / 8 }
    const model = (title, shape, sizes) => {
      const scaled = { ...shape, files: Math.max(1, Math.round(shape.files * scale)) }
      const bytes = scaled.files * scaled.bytes
      const sent = []
      const swarms = sizes.split(',').map((size) => {
        const { doneAt, storeBytes } = simulate(Number(size), scaled, speeds)
        sent.push(storeBytes / bytes)
        const times = [doneAt[0], doneAt[Math.floor(size / 2)], doneAt.at(-1)]
        const [first, middle, last] = times.map((at) => ((at * speeds.rate) / bytes).toFixed(2))
        return `${count(size)} nodes: ${first}, ${middle} and ${last}`
      })
      const text = `First, median and last node, × alone. ${swarms.join('; ')}. Copies from the store: ${Math.max(...sent).toFixed(3)}.`
      bench.section(title, text)
    }
    const shapes = bench.given.shapes.split(',')
    if (shapes.includes('large')) model('model', LARGE, nodes)
    if (shapes.includes('small')) model('small files', SMALL, smallNodes)
  },
}

/** Nodes that begin together: when each was done, in seconds, the first one first; and what the store sent. */
function simulate(nodes, { files, bytes }, speeds) {
  const partBytes = Math.min(bytes, planSharedPartBytes(files * bytes))
  const parts = Array.from({ length: (files * bytes) / partBytes }, (_, index) => {
    const at = index * partBytes
    return { key: `${Math.floor(at / bytes)}.bin`, offset: at % bytes }
  })
  const ahead = Math.max(AHEAD.bytes, (speeds.storeRate / nodes) * AHEAD.seconds)
  const most = { direct: Math.max(AHEAD.parts, Math.ceil(ahead / partBytes)), awaited: MOST_AWAITED }
  const givers = planGivers(nodes, parts)
  const links = new Links(nodes, speeds)
  const has = parts.map(() => new Uint8Array(nodes))
  /** Who waits for a part at a node. */
  const waiting = parts.map(() => new Map())
  const left = new Int32Array(nodes).fill(parts.length)
  const doneAt = []
  let storeBytes = 0
  const lanes = Array.from({ length: nodes }, (_, node) => {
    const laneOf = (part) => (givers[part][node] === FROM_STORE ? 'direct' : 'awaited')
    const { direct = [], awaited = [] } = Object.groupBy([...parts.keys()], laneOf)
    return { direct: { queue: direct, running: 0 }, awaited: { queue: awaited, running: 0 } }
  })
  const rooms = Array.from({ length: nodes }, () => ({ sends: 0, waiting: [] }))
  const leave = (room) => {
    room.sends -= 1
    room.waiting.shift()?.()
  }
  const take = (giver, node, part) => {
    const isStore = giver === FROM_STORE
    const room = rooms[giver]
    if (room?.sends >= FULL.sends && room.sends * partBytes >= FULL.bytes) {
      room.waiting.push(() => take(giver, node, part))
      return
    }
    if (room) room.sends += 1
    const onEnd = () => {
      if (isStore) storeBytes += partBytes
      else leave(room)
      lanes[node][isStore ? 'direct' : 'awaited'].running -= 1
      left[node] -= 1
      if (left[node] === 0) doneAt.push(links.events.now)
      begin(node)
      links.events.add(links.events.now + HOP_SECONDS, () => passOn(node, part))
    }
    links.send({ from: isStore ? nodes : giver, to: node, bytes: partBytes, onEnd })
  }
  const passOn = (node, part) => {
    has[part][node] = 1
    for (const taker of waiting[part].get(node) ?? []) take(node, taker, part)
    waiting[part].delete(node)
  }
  const begin = (node) => {
    for (const [name, lane] of Object.entries(lanes[node]))
      while (lane.running < most[name] && lane.queue.length > 0) {
        const part = lane.queue.shift()
        lane.running += 1
        const giver = givers[part][node]
        if (giver === FROM_STORE || has[part][giver]) take(giver, node, part)
        else waiting[part].set(giver, [...(waiting[part].get(giver) ?? []), node])
      }
  }
  for (let node = 0; node < nodes; node++) begin(node)
  links.events.runAll()
  return { doneAt, storeBytes }
}

/** For every part and node the node that it asks first. */
function planGivers(nodes, parts) {
  const names = Array.from({ length: nodes }, (_, index) => `n${String(index + 1).padStart(2, '0')}`)
  const indexOf = new Map(names.map((name, index) => [name, index]))
  return parts.map(({ key, offset }) => {
    const order = rankOwners(names, key, offset)
    const givers = new Int32Array(nodes)
    for (const [position, name] of order.entries()) {
      const [first] = planPassing(position, 1)
      givers[indexOf.get(name)] = first === undefined ? FROM_STORE : indexOf.get(order[first])
    }
    return givers
  })
}

/** One link up and one down for each node, and the store as the last; every flow gets the smaller of its equal shares. */
class Links {
  events = new EventQueue()
  #rates
  #flows

  /** Rates in bytes per second. */
  constructor(nodes, { rate, storeRate }) {
    this.#rates = [...Array.from({ length: nodes }, () => rate), storeRate]
    this.#flows = this.#rates.map(() => ({ up: new Set(), down: new Set() }))
  }

  /** Sends bytes, and calls `onEnd` when they are there. */
  send({ from, to, bytes, onEnd }) {
    const flow = { from, to, left: bytes, rate: 0, since: this.events.now, version: 0, onEnd }
    this.#flows[from].up.add(flow)
    this.#flows[to].down.add(flow)
    this.#shareAround(flow)
  }

  #end(flow) {
    this.#flows[flow.from].up.delete(flow)
    this.#flows[flow.to].down.delete(flow)
    this.#shareAround(flow)
    flow.onEnd()
  }

  #shareAround({ from, to }) {
    for (const flow of new Set([...this.#flows[from].up, ...this.#flows[to].down])) {
      const up = this.#rates[flow.from] / this.#flows[flow.from].up.size
      const rate = Math.min(up, this.#rates[flow.to] / this.#flows[flow.to].down.size)
      if (rate === flow.rate) continue
      const { now } = this.events
      Object.assign(flow, { left: Math.max(0, flow.left - flow.rate * (now - flow.since)), since: now, rate })
      flow.version += 1
      const { version } = flow
      this.events.add(now + flow.left / rate, () => {
        if (flow.version === version) this.#end(flow) // else it has another rate since
      })
    }
  }
}
