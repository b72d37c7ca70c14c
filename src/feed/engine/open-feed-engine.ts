import { existsSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { DscError } from '../../failure/dsc-error.js'
import { freeBytesOf, openArenaFile } from '../arena/arena-file.js'
import { HeldFiles } from '../mapped/held-files.js'
import { PageTouch } from '../mapped/page-touch.js'
import { planArenaBytes } from '../plan/arena-budget.js'
import { formatGroupOrder, parseGroupOrder } from '../plan/group-order.js'
import { countMixed } from '../plan/mix.js'
import { chooseOrderKind, type OrderKind } from '../plan/order.js'
import type { SampleSupply } from '../sources/sample-supply.js'
import { WaitingReaders } from '../threads/reader-pool.js'
import { FeedEngine } from './feed-engine.js'
import type { FeedSettings } from './feed-settings.js'

/** Starts the reader threads for a feed with these settings. */
export function startReaders({ threads }: Pick<FeedSettings, 'threads'>): WaitingReaders {
  return new WaitingReaders(Math.max(1, threads ?? Math.min(4, availableParallelism())))
}

/** Opens a feed without clients: its arena and its source. `readers`: its threads, from `startReaders`. */
export function openFeedEngine(
  supply: SampleSupply,
  settings: FeedSettings,
  readers = startReaders(settings),
): FeedEngine {
  const { folder } = supply
  const mix = supply.mix ?? settings.mix
  const arenaFolder = settings.arenaFolder ?? (existsSync('/dev/shm') ? '/dev/shm' : tmpdir())
  const held = findHeldFiles(supply, settings)
  const arenaFile = openArenaFile(
    arenaFolder,
    held ? 0 : (settings.memoryBytes ?? planArenaBytes(freeBytesOf(arenaFolder), supply.table.totalBytes)),
  )
  const pool = readers.begin({
    arenaFd: arenaFile.fd,
    folder: folder && {
      root: folder.root,
      tableBytes: folder.table.bytes,
      known: folder.table.known,
      listedMs: folder.table.listedMs,
      held: held?.descriptors,
    },
  })
  return new FeedEngine({
    source: supply.makeSource({ pool, arenaFile }),
    listing: supply.listing,
    mapped: held && {
      files: held,
      touch: new PageTouch({ table: supply.table, pool, memoryBytes: settings.memoryBytes }),
    },
    pool,
    arenaFile,
    seed: settings.seed ?? 0,
    firstEpoch: settings.firstEpoch,
    orderKind: findOrderKind(supply, settings),
    groups: supply.groups,
    mix,
    k: settings.k ?? 'auto',
    requestBytes: settings.requestBytes,
    eviction: settings.eviction ?? (settings.isConformance ? 'patent' : 'lazy'),
    isCarrying: !held && (settings.isCarrying ?? true),
    isConformance: settings.isConformance ?? false,
    nowMs: () => performance.now(),
    roomTimeoutMs: settings.roomTimeoutMs,
  })
}

/** Files that clients map; undefined if samples go through the feed's memory. */
function findHeldFiles(
  { folder, isWhole }: SampleSupply,
  { isMapping = true, isConformance }: FeedSettings,
): HeldFiles | undefined {
  if (!folder || !isWhole || !isMapping || isConformance) return undefined
  return HeldFiles.find(folder.root, folder.table)
}

/** Throws USAGE for an order through groups if the samples have none. */
function findOrderKind({ table, groups, ...supply }: SampleSupply, settings: FeedSettings): OrderKind {
  const { order } = settings
  const mix = supply.mix ?? settings.mix
  if (groups) return order === 'sequential' ? order : formatGroupOrder(groups.window)
  if (parseGroupOrder(order) !== undefined)
    throw new DscError(
      'USAGE',
      `the order ${order} is for Parquet files that lie on this machine, without a mix`,
      {
        hint: 'order shuffle, or none',
      },
    )
  return order ?? chooseOrderKind(mix ? countMixed(mix) : table.count)
}
