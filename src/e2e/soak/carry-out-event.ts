import { setTimeout as sleep } from 'node:timers/promises'
import type { Running } from '../../testing/dsc-processes.js'
import { isCrash } from '../crash/is-crash.js'
import type { Findings } from './findings.js'
import type { NodeName, PlannedEvent } from './plan-soak.js'
import type { SoakWorld } from './soak-world.js'

const AGENT_AWAY_MS = 2000
const PAUSED_MS = 6000

/** Does what is planned to go wrong, and puts it right again. Resolves when it is right. */
export async function carryOutEvent(
  world: SoakWorld,
  event: PlannedEvent,
  findings: Findings,
): Promise<void> {
  findings.count(event.kind)
  findings.tell(describeEvent(event))
  switch (event.kind) {
    case 'agent killed':
    case 'agent stopped':
      return replaceAgent(world, event.node, {
        signal: event.kind === 'agent killed' ? 'SIGKILL' : 'SIGTERM',
        findings,
      })
    case 'agent paused': {
      const { process } = world.agents.get(event.node)!
      process.kill('SIGSTOP')
      await sleep(PAUSED_MS)
      process.kill('SIGCONT')
      return
    }
    case 'record crashed':
    case 'record restarted':
      await world.cluster.postgres.stop(event.kind === 'record crashed' ? 'immediate' : 'fast')
      await sleep(event.awayMs)
      await world.cluster.postgres.start()
      return
    case 'store faulty':
      world.proxy.setRules([{ match: '^GET', fault: event.fault }])
      await sleep(event.forMs)
      world.proxy.setRules([])
      world.proxy.forget()
      return
    case 'clock step':
      if (world.clocks.canStep) world.clocks.step(event.of, event.bySeconds)
      return
    case 'source changed':
      return world.changeSource(event.dataset)
    case 'operator': {
      const { code, stderr } = await world.nodeOf(event.node).dsc(...event.words)
      // A doctor that finds something and a status that cannot see say so by their exit code.
      if (event.words[0] !== 'doctor' && isCrash(code, stderr))
        findings.fail(`${event.node}: ${event.words.join(' ')} ended with ${code}: ${stderr}`)
      return
    }
    case 'settle':
      return
  }
}

/** Events of one kind on one thing must not overlap: the name of what an event needs for itself. */
export function resourceOf(event: PlannedEvent): string {
  switch (event.kind) {
    case 'agent killed':
    case 'agent stopped':
    case 'agent paused':
      return `agent of ${event.node}`
    case 'record crashed':
    case 'record restarted':
      return 'record'
    case 'store faulty':
      return 'store'
    default:
      return 'others'
  }
}

function describeEvent(event: PlannedEvent): string {
  const { kind, ...rest } = event
  return `${kind} ${JSON.stringify(rest)}`
}

async function replaceAgent(
  world: SoakWorld,
  node: NodeName,
  { signal, findings }: { readonly signal: NodeJS.Signals; readonly findings: Findings },
): Promise<void> {
  const agent: Running = world.agents.get(node)!
  agent.process.kill(signal)
  const { code, stderr } = await agent.finished
  if (signal === 'SIGTERM' && code !== null && isCrash(code, stderr))
    findings.fail(`the agent of ${node} was asked to end and ended with ${code}: ${stderr.slice(-2000)}`)
  await sleep(AGENT_AWAY_MS)
  for (let attempt = 0; ; attempt++) {
    try {
      world.agents.set(node, await world.nodeOf(node).startAgent())
      return
    } catch (error) {
      // The record may be away for longer than it waits.
      if (attempt === 5) {
        findings.fail(`the agent of ${node} does not start: ${String(error)}`)
        return
      }
      await sleep(1000)
    }
  }
}
