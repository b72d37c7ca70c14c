import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { Command } from 'commander'
import { findGoverningRecord } from '../../cache/own-record.js'
import { requireOneOwner } from '../../cache/require-one-owner.js'
import { formatConfigFile, type NewSettings } from '../../config/format-config-file.js'
import { type SuggestedRoot, suggestCacheRoot, suggestMinFree } from '../../config/plan/suggest-cache-root.js'
import { resolvePath, resolveRecord } from '../../config/resolve-path.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize, parseByteSize } from '../../model/byte-size.js'
import { findHostName } from '../../platform/host-name.js'
import { listMounts } from '../../platform/list-mounts.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parseCount, parsePercent } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { writeWhole } from '../output/write-whole.js'
import { type Ask, canAsk, chooseSetting, withQuestions } from '../questions/ask.js'
import { CACHE_QUESTIONS } from '../questions/cache-questions.js'

const declare = () =>
  new Command('init')
    .option('--cache-root <dir>', 'folder of the cache (default: on the local disk with most free space)')
    .option('--max-percent <percent>', 'part of that disk that copies may use', argument(parsePercent))
    .option(
      '--min-free <size>',
      'space that downloads leave free, for example 50GiB',
      argument(parseByteSize),
    )
    .option('--max-datasets <count>', 'copies at once', argument(parseCount))
    .option('--low-water-percent <percent>', 'where `dsc cleanup` stops evicting', argument(parsePercent))
    .option('--node <name>', 'name of this machine (default: the host name)')
    .option('--record <url>', 'sqlite:///file or postgres://user@host/database')
    .option('--dry-run', 'print the file and write nothing')
    .option('--yes', 'do not ask, and replace an existing file')
    .addHelpText(
      'after',
      '\nWrites the file that --config or $DSC_CONFIG names, otherwise ./dsc.yaml.\n\nExamples:\n  dsc init --dry-run\n  dsc init --cache-root /nvme/dsc --max-percent 80\n\nFor a node that several people share: sudo dsc setup',
    )

type InitOptions = OptionsOf<typeof declare>

/** `dsc init`: writes a self-explanatory dsc.yaml with values that suit this machine. */
export function initCommand(context: CliContext) {
  return declare().action(async (options) => {
    const { configPath, environment } = context
    const path = resolve(configPath ?? (environment.DSC_CONFIG || 'dsc.yaml'))
    const choose = async (ask?: Ask): Promise<NewSettings> => {
      if (!options.dryRun) await confirmReplacing(path, options, ask)
      return chooseSettings(context, options, ask)
    }
    const isAsking = canAsk() && !options.yes && !options.dryRun && !context.report.isJson
    const settings = await (isAsking ? withQuestions(context.signal, choose) : choose())
    const text = formatConfigFile(settings)
    // `dsc` must accept the file that it writes.
    const { parseSettings } = await import('../../config/parse-settings.js')
    parseSettings(text, path)
    if (!options.dryRun) await requireUsable(settings, path)
    if (!options.dryRun) await writeWhole(path, text, 'dsc init --config <file> writes to another place')
    const { hostName: _, ...written } = settings
    const isDryRun = options.dryRun === true
    context.report.result<'init'>({ path, isDryRun, settings: written, text }, () =>
      options.dryRun ? text.trimEnd() : path,
    )
    if (options.dryRun) return
    const left = placeOwnRecord(environment)
    if (settings.record === undefined && existsSync(left)) {
      context.report.note(
        `What dsc did for you without a dsc.yaml is in another record; to go on with it:\n  dsc record migrate ${left} ${join(settings.cacheRoot, 'record.db')}`,
      )
    }
    context.report.note('Now run `dsc doctor`, then add a dataset under datasets:')
  })
}

/** Throws CACHE_ROOT_INVALID for a cache or a record that the next command would refuse. */
async function requireUsable({ cacheRoot, record }: NewSettings, path: string): Promise<void> {
  const base = { folder: dirname(path), homeDirectory: findHomeDirectory() }
  const root = resolvePath(cacheRoot, base)
  requireOneOwner(root, resolveRecord(record ?? join(root, 'record.db'), base, 'record'))
}

async function confirmReplacing(path: string, options: InitOptions, ask: Ask | undefined): Promise<void> {
  if (options.yes || !existsSync(path)) return
  if (ask && /^y(es)?$/i.test(await ask(`${path} exists. Replace it?`, 'no'))) return
  throw new DscError('CONFIRMATION_REQUIRED', `${path} exists already and stays as it is`, {
    hint: 'dsc init --yes replaces it; dsc init --config <file> writes another',
  })
}

async function chooseSettings(
  { report, environment }: CliContext,
  options: InitOptions,
  ask: Ask | undefined,
): Promise<NewSettings> {
  const homeCache = join(environment.XDG_CACHE_HOME || join(findHomeDirectory(), '.cache'), 'dsc')
  const suggested = suggestCacheRoot(await listMounts(), homeCache)
  if (options.cacheRoot === undefined && suggested !== undefined) report.note(describe(suggested))
  const choose = <Value>(
    given: Value | undefined,
    parse: (raw: string) => Value,
    asked: { readonly question: string; readonly byDefault: string },
  ) => chooseSetting(given, parse, { ask, note: report.note, ...asked })
  const hostName = findHostName()
  const cacheRoot = await choose(options.cacheRoot, String, {
    question: CACHE_QUESTIONS.root,
    byDefault: suggested?.root ?? homeCache,
  })
  const { maxDatasets, minFree, lowWaterPercent } = options
  // Other limits add to this one: without it, they would let copies fill the disk.
  const maxPercent = await choose(options.maxPercent, parsePercent, CACHE_QUESTIONS.maxPercent)
  const node = await choose(options.node, String, { question: 'Name of this machine', byDefault: hostName })
  const isSuggestedDisk = suggested !== undefined && cacheRoot === suggested.root
  const root = resolvePath(cacheRoot, { folder: process.cwd(), homeDirectory: findHomeDirectory() })
  const minFreeBytes = minFree ?? (isSuggestedDisk ? suggestMinFree(suggested) : undefined)
  return {
    hostName,
    cacheRoot: /^~(\/|$)/.test(cacheRoot) ? cacheRoot : resolve(cacheRoot),
    maxDatasets,
    maxPercent,
    minFreeBytes,
    lowWaterPercent,
    record: options.record ?? keepRecord(root, { homeCache, environment }),
    // A file in a shared home folder must not give every machine the same name unasked.
    node: options.node !== undefined || node !== hostName ? node : undefined,
  }
}

/**
 * The record that the cache has already, or gets where no dsc.yaml counts: a second one would know nothing of its copies
 * and leases. Undefined: the default does it.
 */
function keepRecord(
  root: string,
  { homeCache, environment }: { readonly homeCache: string; readonly environment: CliContext['environment'] },
): string | undefined {
  const kept = findGoverningRecord(root) ?? (root === homeCache ? placeOwnRecord(environment) : undefined)
  return kept === join(root, 'record.db') ? undefined : kept
}

/** The record without a dsc.yaml. */
function placeOwnRecord(environment: CliContext['environment']): string {
  return join(environment.XDG_STATE_HOME || join(findHomeDirectory(), '.local', 'state'), 'dsc/record.db')
}

function describe({ root, kindName, freeBytes, capacityBytes }: SuggestedRoot): string {
  return `Most free space for this user: ${root} (${kindName}, ${formatByteSize(freeBytes)} of ${formatByteSize(capacityBytes)} free)`
}
