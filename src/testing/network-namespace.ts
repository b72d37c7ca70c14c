import { execFile, execFileSync } from 'node:child_process'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { needs, needsRoot } from './needs.js'

const run = promisify(execFile)

/** A separate host as far as the network is concerned, connected to the others by a bridge. */
export interface NetworkHost {
  readonly address: string
  /** Words to put before a command to run it on the host. */
  readonly enter: readonly string[]
  /** Pulls its cable: on every connection, nothing is refused and nothing answers. `plug` undoes it. */
  unplug(): Promise<void>
  plug(): Promise<void>
  /** Limits its cable from now on to this many megabits per second each way. */
  shape(megabits: number): Promise<void>
}

/** A bridge in this machine's own network, and the hosts behind it. */
export interface TestNetwork {
  readonly hosts: readonly NetworkHost[]
  /** The address at which the hosts reach a port of this machine's loopback address. */
  relay(port: number): Promise<{ readonly host: string; readonly port: number }>
  /** Disconnects two hosts: what one sends never reaches the other. All others still reach both. */
  cut(one: NetworkHost, other: NetworkHost): Promise<void>
}

/** A hardware address without a link: frames to it are dropped silently. */
const NOBODY = '02:00:00:00:00:01'

/** Why tests that make network namespaces are skipped, or false. */
export function whyNoNamespaces(): string | false {
  const obstacle = needsRoot || needs('ip', 'iproute2')
  if (obstacle) return obstacle
  const name = `dsc-probe-${process.pid}`
  try {
    execFileSync('ip', ['netns', 'add', name], { stdio: 'ignore' })
    execFileSync('ip', ['netns', 'del', name], { stdio: 'ignore' })
    return false
  } catch {
    return 'needs leave to make network namespaces'
  }
}

/** Number of networks that this process has made. */
let made = 0

/** Makes `count` hosts (1 to 200) in their own network, removed with the test. */
export async function makeNetwork(context: Pick<TestContext, 'after'>, count: number): Promise<TestNetwork> {
  // Link names have 15 characters at most. A deleted link may linger, so each network has its own names.
  made += 1
  const number = (process.pid + 7919 * made) & 0xffff
  const id = `${process.pid.toString(36)}${made}`
  const subnet = `10.${number >> 8}.${number & 255}`
  const bridge = `dsb${id}`
  const ip = (...words: string[]) => run('ip', words)
  context.after(async () => {
    for (let index = 1; index <= count; index++) await ip('netns', 'del', `dsc${id}-${index}`).catch(() => {})
    await ip('link', 'del', bridge).catch(() => {})
  })
  await ip('link', 'add', bridge, 'type', 'bridge')
  await ip('addr', 'add', `${subnet}.254/24`, 'dev', bridge)
  await ip('link', 'set', bridge, 'up')
  const hosts: NetworkHost[] = []
  for (let index = 1; index <= count; index++) {
    const [space, cable] = [`dsc${id}-${index}`, `dsv${id}-${index}`]
    const inside = (...words: string[]) => ip('-n', space, ...words)
    await ip('netns', 'add', space)
    const peer = ['peer', 'name', 'eth0', 'address', hardwareAddress(index), 'netns', space]
    await ip('link', 'add', cable, 'type', 'veth', ...peer)
    await ip('link', 'set', cable, 'master', bridge, 'up')
    await inside('addr', 'add', `${subnet}.${index}/24`, 'dev', 'eth0')
    await inside('link', 'set', 'eth0', 'up')
    await inside('link', 'set', 'lo', 'up')
    hosts.push({
      address: `${subnet}.${index}`,
      enter: ['ip', 'netns', 'exec', space],
      unplug: async () => void (await ip('link', 'set', cable, 'down')),
      plug: async () => void (await ip('link', 'set', cable, 'up')),
      async shape(megabits) {
        // The burst holds a whole packet of the kernel, which is longer than one on a wire.
        const limit = ['root', 'tbf', 'rate', `${megabits}mbit`, 'burst', '128kb', 'latency', '50ms']
        await run('tc', ['qdisc', 'replace', 'dev', cable, ...limit])
        await run('tc', ['-n', space, 'qdisc', 'replace', 'dev', 'eth0', ...limit])
      },
    })
  }
  for (const host of hosts) introduce(host, hosts)
  const blind = (host: NetworkHost, target: NetworkHost) =>
    run('ip', [
      ...['-n', host.enter.at(-1)!, 'neigh', 'replace', target.address, 'dev', 'eth0'],
      ...['lladdr', NOBODY, 'nud', 'permanent'],
    ])
  return {
    hosts,
    relay: (port) => openRelay(context, `${subnet}.254`, port),
    async cut(one, other) {
      await Promise.all([blind(one, other), blind(other, one)])
    },
  }
}

/** The locally administered address of the host with this number, from 1. */
function hardwareAddress(index: number): string {
  return `02:00:00:00:01:${index.toString(16).padStart(2, '0')}`
}

/**
 * Gives a host the hardware addresses of all others. All namespaces share one kernel table for lookups, of 1,024
 * entries by default: 32 hosts that meet each other fill it, and then fail to connect to some.
 */
function introduce(host: NetworkHost, all: readonly NetworkHost[]): void {
  const lines = all.map(
    ({ address }, at) =>
      `neigh replace ${address} lladdr ${hardwareAddress(at + 1)} dev eth0 nud permanent\n`,
  )
  execFileSync('ip', ['-n', host.enter.at(-1)!, '-batch', '-'], { input: lines.join('') })
}

async function openRelay(
  context: Pick<TestContext, 'after'>,
  host: string,
  port: number,
): Promise<{ readonly host: string; readonly port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const behind = connect(port, '127.0.0.1')
    for (const [from, to] of [
      [client, behind],
      [behind, client],
    ] as const) {
      sockets.add(from)
      from.pipe(to)
      from.on('error', () => to.destroy())
      from.on('close', () => {
        sockets.delete(from)
        to.destroy()
      })
    }
  })
  context.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  return { host, port: (server.address() as { port: number }).port }
}
