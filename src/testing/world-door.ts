import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { goesThroughDoor } from '../cli/program.js'
import { findVerb, readVerbWords } from '../cli/verb-words.js'
import { findProcess } from '../platform/processes.js'
import type { Running } from './dsc-processes.js'

/**
 * Whether each world's cache belongs to a service, which its commands ask as ordinary clients: DSC_TEST_DOOR=1 npm run
 * test:e2e. What only a cache of one's own can show is listed in scripts/test-door.mjs.
 */
const isDoorTested: boolean = process.env.DSC_TEST_DOOR === '1'

/** Variables that tell who calls, and how; all others tell how to reach sources, which the service does. */
const OF_CALLER = /^(SLURM_|XDG_|DSC_LOG$|NODE_OPTIONS$|HF_HUB_OFFLINE$)/
const START_MS = 60_000

type Environment = Readonly<Record<string, string>>

/** The service of a world: it starts before the first command that asks it, and restarts when its configuration has changed. */
export class WorldDoor {
  /** Undefined: each world's cache is its commands' own. */
  static open(directory: string, startAgent: (environment: Environment) => Running): WorldDoor | undefined {
    return isDoorTested ? new WorldDoor(directory, startAgent) : undefined
  }

  readonly configFile: string
  readonly #socket: string
  readonly #startAgent: (environment: Environment) => Running
  /** `startedFor`: its environment and configuration, or that the test has started it. */
  #service: { readonly running: Running; readonly startedFor: string } | undefined

  private constructor(directory: string, startAgent: (environment: Environment) => Running) {
    this.configFile = join(directory, 'service.yaml') // no client finds it by its name
    this.#socket = join(directory, 'run/dsc.sock')
    this.#startAgent = startAgent
  }

  /** The agent's settings, with this door. */
  addTo(agent: Readonly<Record<string, unknown>> = {}): Readonly<Record<string, unknown>> {
    return { listen: '127.0.0.1:0', door: this.#socket, ...agent }
  }

  /** The environment of a command: a client's has nothing but the door, that of the service's user its configuration. */
  enter(words: readonly string[], environment: Environment): Environment {
    const { argv } = readVerbWords(words)
    const ofService = { ...environment, DSC_CONFIG: this.configFile }
    // dsc bench is for the owner of a cache, and sends everybody else there.
    if (!goesThroughDoor(argv) || findVerb(argv) === 'bench') return ofService
    this.#open(keep(ofService, (name) => !OF_CALLER.test(name)))
    return { ...keep(environment, (name) => OF_CALLER.test(name)), DSC_DOOR: this.#socket }
  }

  /** Starts a command in such an environment. An agent of the test's is the service from now on. */
  start(
    words: readonly string[],
    environment: Environment,
    start: (environment: Environment) => Running,
  ): Running {
    const isAgent = findVerb(readVerbWords(words).argv) === 'agent'
    if (isAgent) this.#end()
    const running = start(this.enter(words, environment))
    if (isAgent) this.#service = { running, startedFor: 'the test' }
    return running
  }

  /** Holds this process up until the door is there, so that a test need not wait for it. */
  #open(environment: Environment): void {
    const wanted = JSON.stringify([environment, readFileSync(this.configFile, 'utf8')])
    const isAsWanted = this.#service?.startedFor === wanted || this.#service?.startedFor === 'the test'
    if (!isAsWanted || !this.#isRunning()) {
      this.#end()
      this.#service = { running: this.#startAgent(environment), startedFor: wanted }
    }
    wait(() => existsSync(this.#socket) || !this.#isRunning())
  }

  #isRunning(): boolean {
    const pid = this.#service?.running.process.pid
    const entry = pid === undefined ? undefined : findProcess(pid)
    return entry !== undefined && !entry.isZombie
  }

  #end(): void {
    if (this.#isRunning()) this.#service?.running.process.kill('SIGKILL')
    wait(() => !this.#isRunning())
    this.#service = undefined
    rmSync(this.#socket, { force: true })
  }
}

function keep(environment: Environment, isKept: (name: string) => boolean): Environment {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => isKept(name)))
}

function wait(isDone: () => boolean): void {
  const endMs = Date.now() + START_MS
  while (!isDone()) {
    if (Date.now() > endMs) throw new Error(`the service of the world did not start or end in ${START_MS} ms`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
  }
}
