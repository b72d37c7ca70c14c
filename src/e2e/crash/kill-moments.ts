import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { World } from '../world.js'

/** A persisted step of some operation, seen from outside. */
export interface KillMoment {
  readonly name: string
  readonly isNow: (world: World) => boolean
}

const hasRow = (world: World, state: string) =>
  world.query(`SELECT 1 FROM copies WHERE state = '${state}'`).length > 0

/** Steps at which a kill is worth most. Each is found by polling, so the kill falls at or shortly after it. */
export const KILL_MOMENTS: readonly KillMoment[] = [
  { name: 'copy reserved', isNow: (world) => hasRow(world, 'reserved') },
  { name: 'copy admitted', isNow: (world) => hasRow(world, 'staging') },
  { name: 'copy evicting', isNow: (world) => hasRow(world, 'evicting') },
  { name: 'staging directory made', isNow: (world) => list(world, 'staging').length > 0 },
  {
    name: 'some files written',
    isNow: (world) => list(world, 'staging').some((id) => list(world, 'staging', id, 'files').length > 0),
  },
  {
    name: 'published, not recorded',
    isNow: (world) => {
      const published = list(world, 'copies').flatMap((name) =>
        list(world, 'copies', name).map((version) => join(world.root, 'copies', name, version)),
      )
      if (published.length === 0) return false
      const known = new Set(
        world.query<{ directory: string }>('SELECT directory FROM copies').map(({ directory }) => directory),
      )
      return published.some((path) => !known.has(path))
    },
  },
  { name: 'trash not empty', isNow: (world) => list(world, 'trash').length > 0 },
  {
    name: 'repair under way',
    isNow: (world) => list(world, 'staging').some((name) => name.startsWith('repair-')),
  },
  {
    name: 'verification under way',
    isNow: (world) => world.query(`SELECT 1 FROM leases WHERE purpose = 'transfer'`).length > 0,
  },
]

function list(world: World, ...path: readonly string[]): readonly string[] {
  const directory = join(world.root, ...path)
  try {
    return existsSync(directory) ? readdirSync(directory) : []
  } catch {
    return [] // it was renamed or removed meanwhile
  }
}
