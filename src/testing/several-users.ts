import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DSC } from './dsc-processes.js'
import { needsRoot } from './needs.js'
import type { World } from './world.js'

/** A user (and group) that a test runs dsc as. */
export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** The group of all of them. */
export const GROUP = 64_000
export const ADA: Owner = { uid: 64_001, gid: GROUP }
export const BOB: Owner = { uid: 64_002, gid: GROUP }

/**
 * Why tests with several users cannot run, or false. If another user cannot run dsc at all, they would prove nothing.
 */
export function findObstacle(): string | false {
  if (needsRoot) return needsRoot
  const [program, ...words] = [...DSC, '--version']
  const tried = spawnSync(program!, words, { ...BOB, cwd: '/', encoding: 'utf8' })
  return tried.status !== 0 && `another user cannot run ${DSC.join(' ')}: ${tried.error ?? tried.stderr}`
}

/** Makes a cache root of this owner and mode, beside the world's own, and a function that runs dsc on it as a user. */
export function makeSharedRoot(world: World, mode: number, { uid, gid }: Owner) {
  chmodSync(world.directory, 0o755)
  const root = join(world.directory, 'shared')
  mkdirSync(root)
  chownSync(root, uid, gid)
  chmodSync(root, mode)
  const environment = { DSC_RECORD: join(root, 'record.db') }
  const as = (owner: Owner, ...words: readonly string[]) =>
    world.start(words, { owner, environment }).finished
  return { root, environment, as }
}
