import { chmodSync, chownSync, existsSync, mkdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { DSC, DSC_IN_SHELL, type Finished, killWithTest, type Running } from './dsc-processes.js'
import type { Owner } from './several-users.js'
import { makeWorld, type World, waitFor, writeTree } from './world.js'

/** The user of the service. */
export const SERVICE: Owner = { uid: 64_010, gid: 64_010 }

/** A node whose cache belongs to its service, and which everybody else asks at its door. */
export interface NodeService {
  readonly world: World
  /** The socket. */
  readonly door: string
  /** The configuration of the service. */
  readonly config: string
  /** Runs dsc as a user without any configuration. */
  as(owner: Owner, ...words: readonly string[]): Promise<Finished>
  startAs(owner: Owner, ...words: readonly string[]): Running
  /** Runs a shell script of the user, in which `dsc` is dsc. */
  startShellAs(owner: Owner, script: string, environment?: Readonly<Record<string, string>>): Running
  /** Stops the service as systemd does; `SIGKILL`: as the kernel does. Resolves with what it has said. */
  stop(signal?: 'SIGTERM' | 'SIGKILL'): Promise<Finished | undefined>
  start(): Promise<void>
}

/** Starts the service of a node with one declared dataset, `flowers`, of two files. */
export async function startNodeService(
  context: Pick<TestContext, 'after'>,
  settings: {
    readonly agent?: object
    readonly datasets?: object
    /** Of `flowers`. Default: everybody. */
    readonly readers?: readonly string[]
    /** Default: a file in the cache's root. */
    readonly record?: string
    readonly node?: string
  } = {},
): Promise<NodeService> {
  const world = await makeWorld(context, {})
  chmodSync(world.directory, 0o755)
  const source = join(world.directory, 'source')
  await writeTree(source, { 'a.txt': 'rose', 'b.txt': 'tulip' })
  const folderOfDoor = join(world.directory, 'run')
  for (const folder of [world.root, folderOfDoor]) {
    mkdirSync(folder)
    chownSync(folder, SERVICE.uid, SERVICE.gid)
  }
  const door = join(folderOfDoor, 'dsc.sock')
  await world.configure({
    record: settings.record ?? `sqlite://${join(world.root, 'record.db')}`,
    ...(settings.node && { node: settings.node }),
    agent: { listen: '127.0.0.1:0', door, ...settings.agent },
    datasets: {
      flowers: {
        source: pathToFileURL(`${source}/`).href,
        ...(settings.readers && { readers: settings.readers }),
      },
      ...settings.datasets,
    },
  })
  const home = join(world.directory, 'nobodys-home')
  const config = join(world.directory, 'dsc.yaml')
  let running: Running | undefined
  const startProcess = killWithTest(context)
  // From the root folder, for the dsc.yaml stands in the world's.
  const run = (owner: Owner, command: readonly string[], environment = {}) =>
    startProcess(command, {
      owner,
      cwd: '/',
      environment: { DSC_DOOR: door, HOME: home, XDG_CACHE_HOME: home, ...environment },
    })
  const startAs = (owner: Owner, ...words: readonly string[]) => run(owner, [...DSC, ...words])
  const start = async () => {
    const agent = world.start(['agent', '--config', config], { owner: SERVICE, environment: { HOME: home } })
    running = agent
    await waitFor('the door', async () => {
      if (agent.process.exitCode !== null) throw new Error('the service has ended')
      return existsSync(door) && (await isOpen(door)) // a killed one leaves its socket behind
    })
  }
  await start()
  return {
    world,
    door,
    config,
    startAs,
    startShellAs: (owner, script, environment) =>
      run(owner, ['sh', '-c', `dsc() { ${DSC_IN_SHELL} "$@"; }; ${script}`], environment),
    as: (owner, ...words) => startAs(owner, ...words).finished,
    start,
    async stop(signal = 'SIGTERM') {
      running?.process.kill(signal)
      return running?.finished
    },
  }
}

function isOpen(door: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(door, () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
