// A swarm as a model of links, with the product's own choice of who takes which part from whom.
// Usage: npm run bench:swarm:simulation -- [nodes,nodes,…] [megabits] [store's megabits] [--scale 1]
// (default: 16,32,…,4096 25 200; --scale as for bench:swarm, to hold the model against a run of the same size)

import { FULL } from '../../dist/agent/copies/send-room.js'
import { planPassing, rankOwners } from '../../dist/policy/placement.js'
import { planSharedPartBytes } from '../../dist/proof/plan-parts.js'
import { readOptions } from './read-options.mjs'
import { Links } from './swarm-links.mjs'

const MEBIBYTE = 1024 ** 2
const FILE_BYTES = 32 * MEBIBYTE
/** Between the last byte of a part and the first that is passed on: proof, manifest, a look at it. */
const HOP_SECONDS = 0.15
/** Requests that a node has under way: for what it reads from the store, and for what it waits for elsewhere. */
const MOST = { direct: 2, awaited: 51 }
const FROM_STORE = -1

const { positionals, values } = readOptions(import.meta.url, {
  allowPositionals: true,
  options: { scale: { type: 'string', default: '1' } },
})
const FILES = Math.max(1, Math.round(8 * Number(values.scale)))
const PART_BYTES = planSharedPartBytes(FILES * FILE_BYTES)
const sizes = (positionals[0] ?? '16,32,64,128,256,512,1024,2048,4096').split(',').map(Number)
const [megabits, storeMegabits] = [Number(positionals[1] ?? 25), Number(positionals[2] ?? 200)]
const aloneSeconds = (FILES * FILE_BYTES * 8) / (megabits * 1e6)
process.stdout.write(
  '| nodes | first, × alone | median | last | copies from the store |\n|--:|--:|--:|--:|--:|\n',
)
for (const nodes of sizes) {
  const { doneAt, storeBytes } = simulate(nodes)
  const times = [doneAt[0], doneAt[Math.floor(nodes / 2)], doneAt.at(-1)]
  const cells = [
    ...times.map((at) => (at / aloneSeconds).toFixed(2)),
    (storeBytes / (FILES * FILE_BYTES)).toFixed(3),
  ]
  process.stdout.write(`| ${nodes.toLocaleString('en-US')} | ${cells.join(' | ')} |\n`)
}

/** Nodes that begin together. Resolves with when each was done, in seconds, the first one first. */
function simulate(nodes) {
  const parts = Array.from({ length: (FILES * FILE_BYTES) / PART_BYTES }, (_, index) => {
    const offset = (index * PART_BYTES) % FILE_BYTES
    return { key: `${Math.floor((index * PART_BYTES) / FILE_BYTES)}.bin`, offset }
  })
  const givers = planGivers(nodes, parts)
  const links = new Links(nodes, (megabits * 1e6) / 8, (storeMegabits * 1e6) / 8)
  const has = parts.map(() => new Uint8Array(nodes))
  /** Who waits for a part at a node. */
  const waiting = parts.map(() => new Map())
  const left = new Int32Array(nodes).fill(parts.length)
  const doneAt = []
  const lanes = Array.from({ length: nodes }, (_, node) => {
    const isDirect = (part) => givers[part][node] === FROM_STORE
    const { direct = [], awaited = [] } = Object.groupBy([...parts.keys()], (part) =>
      isDirect(part) ? 'direct' : 'awaited',
    )
    return { direct: { queue: direct, running: 0 }, awaited: { queue: awaited, running: 0 } }
  })
  /** What each node sends, and who waits for room there. */
  const rooms = Array.from({ length: nodes }, () => ({ sends: 0, waiting: [] }))
  let storeBytes = 0

  const take = (giver, node, part) => {
    const isStore = giver === FROM_STORE
    const room = isStore ? undefined : rooms[giver]
    if (room?.sends >= FULL.sends && room.sends * PART_BYTES >= FULL.bytes) {
      room.waiting.push(() => take(giver, node, part))
      return
    }
    if (room) room.sends += 1
    links.send({
      from: isStore ? nodes : giver,
      to: node,
      bytes: PART_BYTES,
      onEnd: () => {
        if (isStore) storeBytes += PART_BYTES
        else leave(room)
        lanes[node][isStore ? 'direct' : 'awaited'].running -= 1
        left[node] -= 1
        if (left[node] === 0) doneAt.push(links.now)
        begin(node)
        links.after(HOP_SECONDS, () => passOn(node, part))
      },
    })
  }
  const leave = (room) => {
    room.sends -= 1
    room.waiting.shift()?.()
  }
  const passOn = (node, part) => {
    has[part][node] = 1
    for (const taker of waiting[part].get(node) ?? []) take(node, taker, part)
    waiting[part].delete(node)
  }
  const begin = (node) => {
    for (const [name, lane] of Object.entries(lanes[node]))
      while (lane.running < MOST[name] && lane.queue.length > 0) {
        const part = lane.queue.shift()
        lane.running += 1
        const giver = givers[part][node]
        if (giver === FROM_STORE || has[part][giver]) take(giver, node, part)
        else waiting[part].set(giver, [...(waiting[part].get(giver) ?? []), node])
      }
  }
  for (let node = 0; node < nodes; node++) begin(node)
  links.run()
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
