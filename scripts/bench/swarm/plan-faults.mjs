// What goes wrong while a swarm stages: two nodes killed, one slow, one cut off, the record restarted.
import { setTimeout as sleep } from 'node:timers/promises'

/** A slow node has this share of the others' bandwidth. */
const SLOW = 0.25

/** What happens at which share of the bytes. The first node, which gives the command, and the last two are spared. */
export function planFaults({ cluster, network, agents }, megabits) {
  const startedMs = performance.now()
  const told = []
  const running = []
  const nameOf = (index) => cluster.nodes[index].name
  const kill = (index) => () => void agents.get(nameOf(index)).process.kill('SIGKILL')
  const restart = (index) => async () => agents.set(nameOf(index), await cluster.nodes[index].startAgent())
  const steps = [
    { at: 0, name: `${nameOf(3)} is slow`, run: () => network.hosts[3].shape(megabits * SLOW) },
    { at: 0.2, name: `${nameOf(1)} killed`, run: kill(1), undo: [15_000, 'started again', restart(1)] },
    {
      ...{ at: 0.25, name: `${nameOf(4)} cut off`, run: () => network.hosts[4].unplug() },
      undo: [15_000, 'reached again', () => network.hosts[4].plug()],
    },
    { at: 0.35, name: `${nameOf(2)} killed`, run: kill(2), undo: [15_000, 'started again', restart(2)] },
    {
      ...{ at: 0.4, name: 'record stopped', run: () => cluster.postgres.stop('fast') },
      undo: [3000, 'started', () => cluster.postgres.start()],
    },
  ]
  const say = (what) => told.push(`${((performance.now() - startedMs) / 1000).toFixed(1)} s: ${what}`)
  const carryOut = async ({ name, run, undo }) => {
    say(name)
    await run()
    if (undo === undefined) return
    const [afterMs, what, repair] = undo
    await sleep(afterMs)
    say(`${name}: ${what}`)
    await repair()
  }
  const look = (share) => {
    while (steps.length > 0 && steps[0].at <= share) {
      const step = carryOut(steps.shift())
      step.catch(() => {}) // `end` tells what failed, after which everything else is closed
      running.push(step)
    }
  }
  look(0)
  const end = async () => {
    await Promise.all(running)
    await network.hosts[3].shape(megabits)
  }
  return { told, look, end }
}
