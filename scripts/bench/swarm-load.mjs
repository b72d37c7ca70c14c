// What the cables of a swarm carry and what its processes take of the processors; for swarm-run.mjs.
import { readFileSync } from 'node:fs'

/** Ticks of /proc/PID/stat in a second. */
const TICKS = 100

/**
 * So far, for each node and then the store: bytes `down` to it and `up` from it; processor seconds `busy` of each
 * node's agent.
 */
export function readLoad({ network, cluster, agents }) {
  const cables = network.hosts.map(
    ({ enter }) => `/sys/class/net/${enter.at(-1).replace('dsc', 'dsv')}/statistics`,
  )
  return {
    down: cables.map((cable) => readCount(`${cable}/tx_bytes`)),
    up: cables.map((cable) => readCount(`${cable}/rx_bytes`)),
    busy: cluster.nodes.map(({ name }) => readBusy(agents.get(name).process.pid)),
  }
}

function readCount(path) {
  return Number(readFileSync(path, 'utf8'))
}

/** Of a process that is there; 0 of one that was killed. */
function readBusy(pid) {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ')
    return (Number(fields[11]) + Number(fields[12])) / TICKS
  } catch {
    return 0
  }
}
