import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { succeeds } from './dsc-processes.js'
import { type HubServer, startHubServer } from './hub-server.js'
import { makeWorld, type World } from './world.js'

/** A hub, and a world whose commands are to ask it. */
export async function openHub(
  context: TestContext,
): Promise<{ readonly hub: HubServer; readonly world: World }> {
  const hub = await startHubServer()
  context.after(() => hub.close())
  return { hub, world: await makeWorld(context, {}) }
}

/** Runs dsc with the hub as HF_ENDPOINT, without a token that this test does not name. */
export function run(world: World, hub: HubServer, words: readonly string[], environment = {}) {
  const none = { HF_TOKEN: '', HF_TOKEN_PATH: '', HF_HOME: join(world.directory, 'home') }
  return world.start(words, { environment: { HF_ENDPOINT: hub.endpoint, ...none, ...environment } }).finished
}

/** Prepares with the hub; the answer of `--json`. */
export async function prepare(world: World, hub: HubServer, words: readonly string[], environment = {}) {
  const prepared = await succeeds(
    run(world, hub, ['prepare', ...words, '--task', 'a', '--json'], environment),
  )
  return JSON.parse(prepared.stdout)
}

/** The files below a folder, sorted. */
export const namesBelow = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()
