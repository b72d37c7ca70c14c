import { parseArgs } from 'node:util'
import { reportPrepared } from './cli/report-prepared.js'
import { createReporter } from './cli/reporter.js'
import { loadConfig } from './config/load-config.js'
import { parseDuration } from './model/duration.js'
import { findHomeDirectory } from './platform/this-user.js'
import { openExistingSqliteRecord } from './records/sqlite/record-store.js'
import { identifyCaller } from './stage/identify-caller.js'
import { chooseHolder } from './stage/plan/choose-holder.js'
import { takeReadyCopy } from './stage/take-ready-copy.js'

/**
 * The path that every job takes every time: `dsc prepare <declared dataset>` whose copy is ready. It is bundled
 * into one file and loads neither commander nor anything that stages, so that it takes about as long as opening
 * the record (scripts/bench/warm-prepare.mjs). False: it is not that simple, and nothing was done that the
 * whole program would not do again; every failure is left to the whole program, too.
 */
export async function prepareIfReady(argv: readonly string[], version: string): Promise<boolean> {
  try {
    return await takeAndReport(argv, version)
  } catch {
    return false
  }
}

async function takeAndReport(argv: readonly string[], version: string): Promise<boolean> {
  // Throws at any other option.
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      task: { type: 'string' },
      ttl: { type: 'string' },
      config: { type: 'string' },
      json: { type: 'boolean', default: false },
      quiet: { type: 'boolean', short: 'q', default: false },
    },
  })
  const [verb, name] = positionals
  if (verb !== 'prepare' || name === undefined || positionals.length !== 2) return false
  const {
    datasets,
    record: location,
    node,
  } = await loadConfig({
    explicitPath: values.config,
    environment: process.env,
    workingDirectory: process.cwd(),
    homeDirectory: findHomeDirectory(),
    version,
  })
  const declared = datasets.find((dataset) => dataset.name === name)
  if (location.kind !== 'sqlite') return false
  const record = openExistingSqliteRecord(location.path)
  if (record === undefined) return false
  try {
    const dataset = declared ?? (await record.findDataset(name))
    if (dataset === undefined) return false
    const caller = identifyCaller({
      environment: process.env,
      task: values.task,
      ttlMs: values.ttl === undefined ? undefined : parseDuration(values.ttl),
    })
    const lease = chooseHolder(caller, Date.now())
    const ready = await takeReadyCopy({ record, node, nowMs: Date.now }, dataset, lease)
    if (ready.outcome !== 'ready') return false
    const report = createReporter({ isJson: values.json, isQuiet: values.quiet, nowMs: Date.now })
    reportPrepared(report, { ...ready, isStagedHere: false }, lease)
    return true
  } finally {
    await record.close()
  }
}
