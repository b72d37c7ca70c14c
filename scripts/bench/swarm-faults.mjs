// What goes wrong while a swarm stages: two nodes killed, one slow, one cut off, the record restarted; for swarm.mjs.

/** A slow node has this share of the others' bandwidth. */
const SLOW = 0.25

/** What happens at which share of the bytes. The first node, which gives the command, and the last two are spared. */
export function planFaults(swarm, megabits) {
  const { cluster, network, agents } = swarm
  const startedMs = performance.now()
  const told = []
  const running = []
  /** What fails is told by `end`, after which everything else is closed. */
  const begin = (step) => {
    step.catch(() => {})
    running.push(step)
  }
  const say = (what) => told.push(`${((performance.now() - startedMs) / 1000).toFixed(1)} s: ${what}`)
  const kill = (index) => () => {
    agents.get(cluster.nodes[index].name).process.kill('SIGKILL')
  }
  const steps = [
    { at: 0, name: `${cluster.nodes[3].name} is slow`, run: () => network.hosts[3].shape(megabits * SLOW) },
    { at: 0.2, name: `${cluster.nodes[1].name} killed`, run: kill(1) },
    { at: 0.25, name: `${cluster.nodes[4].name} cut off`, run: () => network.hosts[4].unplug() },
    { at: 0.35, name: `${cluster.nodes[2].name} killed`, run: kill(2) },
    { at: 0.4, name: 'record stopped', run: () => cluster.postgres.stop('fast') },
  ]
  const later = [
    { afterMs: 3000, after: 'record stopped', name: 'record started', run: () => cluster.postgres.start() },
    {
      afterMs: 15_000,
      after: `${cluster.nodes[4].name} cut off`,
      name: `${cluster.nodes[4].name} reached again`,
      run: () => network.hosts[4].plug(),
    },
    ...[1, 2].map((index) => ({
      afterMs: 15_000,
      after: `${cluster.nodes[index].name} killed`,
      name: `${cluster.nodes[index].name} started again`,
      run: async () => {
        agents.set(cluster.nodes[index].name, await cluster.nodes[index].startAgent())
      },
    })),
  ]
  const carryOut = async ({ name, run }) => {
    say(name)
    const followers = later.filter(({ after }) => after === name)
    await run()
    for (const follower of followers)
      begin(
        new Promise((resolve) => {
          setTimeout(resolve, follower.afterMs)
        }).then(() => carryOut(follower)),
      )
  }
  const look = (share) => {
    while (steps.length > 0 && steps[0].at <= share) begin(carryOut(steps.shift()))
  }
  look(0)
  return {
    told,
    look,
    async end() {
      while (running.length > 0) await running.shift()
      await network.hosts[3].shape(megabits)
    },
  }
}
