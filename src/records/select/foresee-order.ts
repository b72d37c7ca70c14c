import type { Copy, CopyUse } from '../../model/copy.js'
import type { EvictionOrder } from '../../policy/eviction-order.js'
import { compareIdle, findCandidates, isLongestIdle } from '../../policy/plan-eviction.js'
import type { OrderRequest } from '../contract/record-requests.js'
import { COPY_USE_COLUMNS, createCopyUseReader } from '../database/row-mapping.js'
import type { SqlReader, SqlValue } from '../database/sql-database.js'
import { selectCopyUses } from './select-copy-uses.js'

/** Word for word the condition of index `copies_idle_longest`. */
const MAY_BE_IDLE = "state = 'ready' AND lock_state IS NULL AND has_source = 1"
const IS_LIVE = '(expires_at_ms IS NULL OR expires_at_ms > ?)'
/** Goes before a copy that was used at the same time; not by the index of datasets, which would read all of the node. */
const HAS_EQUAL_AGE =
  "last_used_at_ms = ? AND (coalesce(dataset, ''), version, created_at_ms, copy_id) < (?, ?, ?, ?)"

interface NodeAt {
  readonly node: string
  /** Unix epoch, ms. */
  readonly nowMs: number
}

/**
 * The order of eviction on a node, without reading the copies in between: reads those that come before all idle ones,
 * and counts the idle ones before each copy of the dataset.
 */
export async function foreseeOrder(
  reader: SqlReader,
  { node, dataset, limit }: OrderRequest,
  nowMs: number,
): Promise<EvictionOrder> {
  const [moving, several, own, idle] = await Promise.all([
    selectCopyUses(reader, { node, states: ['reserved', 'staging', 'evicting'] }, nowMs),
    selectCopyUses(reader, { node, isOneOfSeveral: true }, nowMs),
    selectCopyUses(reader, { node, dataset }, nowMs),
    selectIdleLongest(reader, { node, nowMs }, limit),
  ])
  const known = new Map([...moving, ...several, ...own, ...idle].map((copy) => [copy.copyId, copy]))
  const found = findCandidates([...known.values()])
  const sooner = found.filter((victim) => !isLongestIdle(victim)) // all of the node
  const replaced = sooner.flatMap(({ copy }) => (copy.state === 'ready' ? [copy] : [])) // idle, too
  const ranked = found.filter(({ copy }) => copy.dataset === dataset)
  const last = ranked.filter(isLongestIdle).map(({ copy }) => copy)
  const counts = await countIdle(reader, { node, nowMs }, last)
  const candidates = sooner.length - replaced.length + counts.all
  const rankOf = (copy: Copy) => {
    const at = last.indexOf(copy)
    if (at === -1) return sooner.findIndex((victim) => victim.copy === copy) + 1
    const before = counts.before[at]! - replaced.filter((each) => compareIdle(each, copy) < 0).length
    return sooner.length + before + 1
  }
  return {
    first: found.slice(0, limit),
    ranks: ranked.map(({ copy, reason }) => ({
      ...{ copyId: copy.copyId, rank: rankOf(copy), candidates, reason },
    })),
  }
}

/** The idle copies of a node that were used longest ago, in the order of `compareIdle`. */
export function selectIdleLongest(
  reader: SqlReader,
  { node, nowMs }: NodeAt,
  limit: number,
): Promise<readonly CopyUse[]> {
  return reader.map(
    `SELECT ${COPY_USE_COLUMNS} FROM copies
      WHERE node = ? AND ${MAY_BE_IDLE} AND NOT EXISTS
        (SELECT 1 FROM leases WHERE leases.copy_id = copies.copy_id AND ${IS_LIVE})
      ORDER BY last_used_at_ms, dataset, version, created_at_ms, copy_id LIMIT ?`,
    [nowMs, nowMs, node, nowMs, limit],
    createCopyUseReader(),
  )
}

/** Counts the idle copies of a node, and those that go before each of `copies`: in an index, less the few leased ones. */
async function countIdle(
  reader: SqlReader,
  { node, nowMs }: NodeAt,
  copies: readonly Copy[],
): Promise<{ readonly all: number; readonly before: readonly number[] }> {
  const count = async (condition: string, values: readonly SqlValue[]) => {
    const sql = `SELECT count(*) AS copies FROM copies WHERE ${MAY_BE_IDLE} AND node = ? AND ${condition}`
    return Number((await reader.all(sql, [node, ...values]))[0]!.copies)
  }
  const [used = {}] = await reader.all(
    `WITH leased AS MATERIALIZED (SELECT DISTINCT copy_id FROM leases WHERE node = ? AND ${IS_LIVE})
      SELECT count(*) AS copies${copies.map((_, at) => `, sum(CASE WHEN last_used_at_ms < ? OR ${HAS_EQUAL_AGE} THEN 1 ELSE 0 END) AS before_${at}`).join('')}
      FROM leased JOIN copies USING (copy_id) WHERE ${MAY_BE_IDLE}`,
    [node, nowMs, ...copies.flatMap((copy) => [copy.lastUsedAtMs, ...placeOf(copy)])],
  )
  const before = copies.map(async (copy, at) => {
    const sooner = await count('last_used_at_ms < ?', [copy.lastUsedAtMs])
    return sooner + (await count(HAS_EQUAL_AGE, placeOf(copy))) - Number(used[`before_${at}`])
  })
  const all = (await count('last_used_at_ms < ?', [Number.MAX_SAFE_INTEGER])) - Number(used.copies)
  return { all, before: await Promise.all(before) }
}

function placeOf({ lastUsedAtMs, dataset, version, createdAtMs, copyId }: Copy): readonly SqlValue[] {
  return [lastUsedAtMs, dataset, version, createdAtMs, copyId]
}
