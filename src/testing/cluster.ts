import { mkdir, writeFile } from 'node:fs/promises'
import { get as httpGet } from 'node:http'
import { get as httpsGet } from 'node:https'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { stringify } from 'yaml'
import { DSC, type Finished, killWithTest, type Running } from './dsc-processes.js'
import { findFreePort } from './free-port.js'
import type { TestNetwork } from './network-namespace.js'
import { type PostgresServer, startPostgresServer } from './postgres-server.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

/** The token shared by all agents of the test. */
export const TOKEN = 'a token that all agents of the test share'

/** Several nodes on this machine, each with its own cache root, configuration and agent, and one record. */
export interface Cluster {
  readonly directory: string
  readonly postgres: PostgresServer
  readonly recordUrl: string
  readonly nodes: readonly ClusterNode[]
}

export interface ClusterNode {
  readonly name: string
  readonly root: string
  readonly url: string
  readonly configPath: string
  /** Runs dsc on this node. */
  dsc(...words: readonly string[]): Promise<Finished>
  start(...words: readonly string[]): Running
  /** Starts the agent and waits until it answers. */
  startAgent(): Promise<Running>
}

export interface ClusterOptions {
  readonly nodes: readonly string[]
  readonly datasets: Readonly<Record<string, unknown>>
  readonly environment?: Readonly<Record<string, string>>
  /** Additional variables, by node. */
  readonly environments?: Readonly<Record<string, Readonly<Record<string, string>>>>
  readonly stage?: Readonly<Record<string, unknown>>
  readonly cache?: Readonly<Record<string, unknown>>
  readonly agent?: Readonly<Record<string, unknown>>
  /** Settings of the PostgreSQL server, `name=value`. */
  readonly postgres?: readonly string[]
  readonly postgresEnvironment?: Readonly<Record<string, string>>
  /** Puts each node on its own host, in the order of `nodes`. Default: all on this machine's loopback address. */
  readonly network?: TestNetwork
  /** Agents reach each other at these URLs instead of directly; called with the listening port. */
  readonly advertise?: (node: string, port: number) => Promise<string>
}

/** Of 32 agents on two busy processors, one takes more than 30 s to start; an agent that exits is noticed at once. */
const START_LIMIT_MS = 120_000

/** Makes a cluster; everything ends with the test. */
export async function makeCluster(
  context: Pick<TestContext, 'after'>,
  options: ClusterOptions,
): Promise<Cluster> {
  const directory = await temporaryDirectory(context)
  const postgres = await startPostgresServer({
    options: options.postgres ?? [],
    environment: options.postgresEnvironment ?? {},
  })
  const startProcess = killWithTest(context)
  context.after(() => postgres.close())
  const database = new URL(await postgres.makeDatabase())
  const { network } = options
  if (network) {
    const relay = await network.relay(postgres.port)
    database.host = `${relay.host}:${relay.port}`
  }
  const recordUrl = database.href
  const tokenFile = join(directory, 'token')
  await writeFile(tokenFile, `${TOKEN}\n`)
  const nodes: ClusterNode[] = []
  for (const [index, name] of options.nodes.entries()) {
    const host = network?.hosts[index] ?? { address: '127.0.0.1', enter: [] }
    const home = join(directory, name)
    await mkdir(home)
    const port = await findFreePort()
    const configPath = join(home, 'dsc.yaml')
    const root = join(home, 'cache')
    const advertise = await options.advertise?.(name, port)
    await writeFile(
      configPath,
      stringify({
        record: recordUrl,
        node: name,
        cache: { root, ...options.cache },
        agent: {
          listen: `${host.address}:${port}`,
          tokenFile,
          ...(advertise === undefined ? {} : { advertise }),
          ...options.agent,
        },
        ...(options.stage ? { stage: options.stage } : {}),
        datasets: options.datasets,
      }),
    )
    const start = (...words: readonly string[]): Running =>
      startProcess([...host.enter, ...DSC, ...words, '--config', configPath], {
        cwd: home,
        environment: {
          DSC_RETRY_FOR: '3s',
          XDG_CACHE_HOME: home,
          ...options.environment,
          ...options.environments?.[name],
        },
      })
    const url = `${options.agent?.tls ? 'https' : 'http'}://${host.address}:${port}`
    nodes.push({
      name,
      root,
      url,
      configPath,
      start,
      dsc: (...words) => start(...words).finished,
      async startAgent() {
        const running = start('agent')
        let ended: Finished | undefined
        void running.finished.then((finished) => {
          ended = finished
        })
        await waitFor(
          `the agent of ${name}`,
          async () => {
            if (ended) throw new Error(`the agent of ${name} ended: ${ended.stderr}`)
            return isHealthy(url)
          },
          START_LIMIT_MS,
        )
        return running
      },
    })
  }
  return { directory, postgres, recordUrl, nodes }
}

/** Whether an agent answers at `url`, with any certificate. */
function isHealthy(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const get = url.startsWith('https:') ? httpsGet : httpGet
    get(`${url}/readyz`, { rejectUnauthorized: false, agent: false }, (answer) => {
      answer.resume()
      resolve(answer.statusCode === 200)
    }).once('error', () => resolve(false))
  })
}
