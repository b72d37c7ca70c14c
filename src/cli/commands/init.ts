import { existsSync } from 'node:fs'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { Command } from 'commander'
import { formatConfigFile, type NewSettings } from '../../config/format-config-file.js'
import { type SuggestedRoot, suggestCacheRoot, suggestMinFree } from '../../config/plan/suggest-cache-root.js'
import { DscError } from '../../failure/dsc-error.js'
import { formatByteSize, parseByteSize } from '../../model/byte-size.js'
import { listMounts } from '../../platform/list-mounts.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import type { InitAnswer } from '../answers/cache-answers.js'
import { argument, parseCount, parsePercent } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'

interface InitOptions {
  readonly cacheRoot?: string
  readonly maxPercent?: number | undefined
  readonly maxDatasets?: number | undefined
  readonly minFree?: number
  readonly lowWaterPercent?: number | undefined
  readonly node?: string | undefined
  readonly record?: string | undefined
  readonly yes?: true
  readonly dryRun?: true
}

/** `dsc init`: writes a self-explanatory dsc.yaml with values that suit this machine. */
export function initCommand(context: CliContext): Command {
  return new Command('init')
    .description('write a commented dsc.yaml for this machine')
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
      '\nWrites the file that --config or $DSC_CONFIG names, otherwise ./dsc.yaml.\n\nExamples:\n  dsc init --dry-run\n  dsc init --cache-root /nvme/dsc --max-percent 80\n  sudo dsc init --config /etc/dsc/dsc.yaml --cache-root /nvme/dsc --yes',
    )
    .action(async (options: InitOptions) => {
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
      if (!options.dryRun) await writeWhole(path, text)
      const { hostName: _, ...written } = settings
      const isDryRun = options.dryRun === true
      const answer: InitAnswer = { dsc: 1, path, isDryRun, settings: written, text }
      context.report.result(answer, () => (options.dryRun ? text.trimEnd() : path))
      if (options.dryRun) return
      const left = join(
        context.environment.XDG_STATE_HOME || join(findHomeDirectory(), '.local', 'state'),
        'dsc/record.db',
      )
      if (settings.record === undefined && existsSync(left)) {
        context.report.note(
          `What dsc did for you without a dsc.yaml is in another record; to go on with it:\n  dsc record migrate ${left} ${join(settings.cacheRoot, 'record.db')}`,
        )
      }
      context.report.note('Now run `dsc doctor`, then add a dataset under datasets:')
    })
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
  const choose = async <Value>(
    given: Value | undefined,
    parse: (raw: string) => Value,
    { question, byDefault }: { readonly question: string; readonly byDefault: string },
  ): Promise<Value> => {
    if (given !== undefined) return given
    try {
      return parse(ask ? await ask(question, byDefault) : byDefault)
    } catch (error) {
      if (!ask || !(error instanceof RangeError)) throw error
      report.note(error.message)
      return choose(given, parse, { question, byDefault })
    }
  }

  const hostName = hostname().split('.')[0] || 'localhost'
  const cacheRoot = await choose(options.cacheRoot, String, {
    question: 'Folder for the copies',
    byDefault: suggested?.root ?? homeCache,
  })
  const { maxDatasets, minFree, lowWaterPercent, record } = options
  const isLimited = maxDatasets !== undefined || minFree !== undefined
  const maxPercent =
    isLimited && options.maxPercent === undefined
      ? undefined
      : await choose(options.maxPercent, parsePercent, {
          question: 'Percent of that disk that copies may take',
          byDefault: '80',
        })
  const node = await choose(options.node, String, { question: 'Name of this machine', byDefault: hostName })
  const isSuggestedDisk = suggested !== undefined && cacheRoot === suggested.root
  const minFreeBytes = minFree ?? (isSuggestedDisk && !isLimited ? suggestMinFree(suggested) : undefined)
  return {
    hostName,
    cacheRoot: /^~(\/|$)/.test(cacheRoot) ? cacheRoot : resolve(cacheRoot),
    maxDatasets,
    maxPercent,
    minFreeBytes,
    lowWaterPercent,
    record,
    // A file in a shared home folder must not give every machine the same name unasked.
    node: options.node !== undefined || node !== hostName ? node : undefined,
  }
}

function describe({ root, kindName, freeBytes, capacityBytes }: SuggestedRoot): string {
  return `Most free space for this user: ${root} (${kindName}, ${formatByteSize(freeBytes)} of ${formatByteSize(capacityBytes)} free)`
}

/** Writes all or nothing: a reader never sees half a file. */
async function writeWhole(path: string, text: string): Promise<void> {
  const partPath = `${path}.${process.pid}.part`
  try {
    await mkdir(dirname(path), { recursive: true })
    await writeFile(partPath, text)
    await rename(partPath, path)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === undefined) throw error
    throw new DscError('CONFIG_INVALID', `cannot write ${path}: ${code}`, {
      hint: 'dsc init --config <file> writes to another place',
      cause: error,
    })
  }
}

/** Whether somebody at a terminal can answer. */
function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true
}

/** Asks a person; an empty answer means `byDefault`. */
type Ask = (question: string, byDefault: string) => Promise<string>

/** Runs `work` with a way to ask on the terminal (on stderr, so that stdout carries only the result). */
async function withQuestions<Value>(signal: AbortSignal, work: (ask: Ask) => Promise<Value>): Promise<Value> {
  // One iterator for all questions: it keeps lines that were typed ahead or pasted.
  const terminal = createInterface({ input: process.stdin, output: process.stderr, signal })
  const answers = terminal[Symbol.asyncIterator]()
  try {
    return await work(async (question, byDefault) => {
      terminal.setPrompt(`${question} [${byDefault}]: `)
      terminal.prompt()
      const answer = await answers.next()
      // Ctrl+C, Ctrl+D or a signal.
      if (answer.done) throw new DscError('INTERRUPTED', 'stopped before every question was answered')
      return answer.value.trim() || byDefault
    })
  } finally {
    terminal.close()
  }
}
