import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Command } from 'commander'
import type { Config } from '../../config/config.js'
import { NODE_CONFIG_FILE } from '../../config/find-door.js'
import { formatConfigFile } from '../../config/format-config-file.js'
import { suggestCacheRoot, suggestMinFree } from '../../config/plan/suggest-cache-root.js'
import { resolveSource } from '../../config/resolve-path.js'
import { resolveSettings } from '../../config/resolve-settings.js'
import { DscError } from '../../failure/dsc-error.js'
import { findHostName } from '../../platform/host-name.js'
import { listMounts } from '../../platform/list-mounts.js'
import { findOwnCommand } from '../../platform/own-command.js'
import { findHomeDirectory } from '../../platform/this-user.js'
import { UserDirectory } from '../../platform/user-directory.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { OptionsOf } from '../arguments/options-of.js'
import { argument, parsePercent } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { type Ask, canAsk, chooseSetting, withQuestions } from '../questions/ask.js'
import { CACHE_QUESTIONS } from '../questions/cache-questions.js'
import { applyStep } from '../setup/apply-step.js'
import { isServed, lookAsUser, type UserLook } from '../setup/look-as-user.js'
import {
  describeStep,
  listDifferences,
  listMissingSteps,
  parseDatasetWords,
  SERVICE_USER,
  type SetupStep,
  type WantedNode,
} from '../setup/missing-steps.js'
import { readFacts, requireRootsOwn } from '../setup/read-facts.js'
import { AGENT_UNIT, formatAgentUnit } from '../units/agent-unit.js'

const OWN_ROOT = '/var/lib/dsc/cache'

const declare = () =>
  new Command('setup')
    .option('--cache-root <dir>', 'folder of the cache (default: on the emptiest disk)')
    .option('--max-percent <percent>', 'part of its disk for copies', argument(parsePercent))
    .option('--dataset <name=url...>', 'datasets that people share', addDataset)
    .option('--dry-run', 'show what would be done')
    .option('--yes', 'do not ask')
    .addHelpText(
      'after',
      `\nMakes the user dsc and its cache, writes ${NODE_CONFIG_FILE} if it is missing, starts the service, and looks at\nthe node as an ordinary user. Run again, it only does what is missing.\n\nExamples:\n  sudo dsc setup\n  sudo dsc setup --cache-root /nvme/dsc --dataset flowers=s3://ml-data/flowers/ --yes`,
    )

type SetupOptions = OptionsOf<typeof declare>

/** `dsc setup`: makes this machine a shared node, whose cache belongs to its service. */
export function setupCommand(context: CliContext) {
  return declare().action(async (options) => {
    const isDryRun = options.dryRun === true
    requireRoot({ isDryRun })
    const { configText, config } = await chooseConfig(context, options)
    const dsc = findOwnCommand()
    const user = await new UserDirectory().accountOf(SERVICE_USER)
    const facts = await readFacts(AGENT_UNIT, { root: config.cache.root, user })
    if (!isDryRun && !facts.hasPackagedUnit) requireRootsOwn(dsc.map((path) => realpathSync(path)))
    const steps = listMissingSteps(facts, {
      ...{ configPath: NODE_CONFIG_FILE, configText, config },
      ...{ unit: AGENT_UNIT, unitText: formatAgentUnit(dsc) },
    })
    if (!isDryRun) await apply(steps, context)
    const isSupervised = facts.service !== undefined
    const { door } = config.agent
    const isOpen = !isDryRun && door !== undefined && (isSupervised || (await isServed(door)))
    const looks = isOpen ? await lookAround(config, context) : []
    const supervisor = isSupervised ? null : formatSupervised(dsc, door)
    const answer: AnswerOf<'setup'> = {
      ...{ isDryRun, config: NODE_CONFIG_FILE, cacheRoot: config.cache.root },
      steps: steps.map(({ kind, path }) => ({ kind, path })),
      supervisor: isOpen ? null : supervisor,
      looks,
    }
    context.report.result(answer, () => formatAnswer(answer, steps))
  })
}

function requireRoot({ isDryRun }: { readonly isDryRun: boolean }): void {
  if (process.platform !== 'linux')
    throw new DscError('SETUP_FAILED', `dsc setup needs Linux, found ${process.platform}`, {
      hint: 'dsc init writes a dsc.yaml for a cache of your own',
    })
  const uid = process.geteuid?.()
  if (uid === 0 || isDryRun) return
  throw new DscError(
    'SETUP_FAILED',
    `dsc setup makes a user and a service: expected root, found uid ${uid}`,
    { hint: 'sudo dsc setup; a cache of your own needs none' },
  )
}

/** Datasets of `name=URL` words; a URL may be a folder, from here. */
function readDatasets(words: readonly string[]): Readonly<Record<string, string>> {
  const base = { folder: process.cwd(), homeDirectory: findHomeDirectory() }
  const named = Object.entries(parseDatasetWords(words))
  return Object.fromEntries(named.map(([name, raw]) => [name, resolveSource(raw, base)]))
}

function addDataset(word: string, others: Readonly<Record<string, string>> = {}) {
  return { ...others, ...argument((raw) => readDatasets([raw]))(word) }
}

/** The node's dsc.yaml as it is; if it is missing, one made from options and answers. */
async function chooseConfig(context: CliContext, options: SetupOptions) {
  const wanted: WantedNode = {
    cacheRoot: options.cacheRoot === undefined ? undefined : resolve(options.cacheRoot),
    maxPercent: options.maxPercent,
    datasets: options.dataset ?? {},
  }
  if (existsSync(NODE_CONFIG_FILE)) {
    const configText = readFileSync(NODE_CONFIG_FILE, 'utf8')
    const config = await readConfig(configText)
    const differences = listDifferences(wanted, config)
    if (differences.length === 0) return { configText, config }
    throw new DscError(
      'CONFIRMATION_REQUIRED',
      `${NODE_CONFIG_FILE} stays as it is. ${differences.join('; ')}`,
      {
        hint: `edit it, then sudo systemctl restart ${AGENT_UNIT}; without these options, dsc setup goes by it`,
      },
    )
  }
  const isAsking = canAsk() && !options.yes && !options.dryRun && !context.report.isJson
  const choose = (ask?: Ask) => chooseNode(context, { wanted, ask })
  const configText = formatConfigFile(await (isAsking ? withQuestions(context.signal, choose) : choose()))
  return { configText, config: await readConfig(configText) }
}

async function chooseNode(
  { report }: CliContext,
  { wanted, ask }: { readonly wanted: WantedNode; readonly ask: Ask | undefined },
) {
  const asking = { ask, note: report.note }
  const suggested = suggestCacheRoot(await listMounts(), OWN_ROOT)
  const cacheRoot = await chooseSetting(wanted.cacheRoot, resolve, {
    ...{ question: CACHE_QUESTIONS.root, byDefault: suggested?.root ?? OWN_ROOT, ...asking },
  })
  const maxPercent = await chooseSetting(wanted.maxPercent, parsePercent, {
    ...{ ...CACHE_QUESTIONS.maxPercent, ...asking },
  })
  const given = Object.keys(wanted.datasets).length > 0 ? wanted.datasets : undefined
  const readWords = (line: string) => readDatasets(line === 'none' ? [] : line.split(/\s+/))
  const datasets = await chooseSetting(given, readWords, {
    ...{ question: 'Datasets, as name=URL name=URL', byDefault: 'none', ...asking },
  })
  const isSuggested = suggested !== undefined && suggested.root === cacheRoot
  const minFreeBytes = isSuggested ? suggestMinFree(suggested) : undefined
  return { hostName: findHostName(), cacheRoot, maxPercent, minFreeBytes, datasets }
}

/** Reads a text as the node's service reads its dsc.yaml. */
async function readConfig(text: string): Promise<Config> {
  const { parseSettings } = await import('../../config/parse-settings.js')
  const home = '/var/lib/dsc'
  return resolveSettings({
    ...parseSettings(text, NODE_CONFIG_FILE),
    ...{ filePath: NODE_CONFIG_FILE, folder: dirname(NODE_CONFIG_FILE), workingDirectory: '/' },
    ...{ homeDirectory: home, cacheHome: `${home}/.cache`, stateHome: `${home}/.local/state` },
    ...{ hostName: findHostName(), environment: {}, overrides: {} },
  })
}

async function apply(steps: readonly SetupStep[], { report }: CliContext): Promise<void> {
  process.umask(0o022)
  for (const step of steps) {
    report.progress(describeStep(step, { isDryRun: true }))
    await applyStep(step)
  }
  report.progress(undefined)
}

/** The node as an ordinary user sees it, and whether the service reaches the first dataset. */
async function lookAround({ datasets }: Config, { signal, report }: CliContext): Promise<UserLook[]> {
  const [first] = datasets
  const looks: UserLook[] = []
  for (const words of [['status', '--plain'], ...(first ? [['prepare', first.name, '--plan']] : [])]) {
    report.progress(`dsc ${words.join(' ')}`)
    looks.push(await lookAsUser(words, signal))
  }
  report.progress(undefined)
  return looks
}

/** Formats the command that a supervisor runs as root: dsc becomes the owner of the cache by itself. */
function formatSupervised(dsc: readonly string[], door: string | undefined): string {
  const folder =
    door === undefined ? '' : `install -d -o ${SERVICE_USER} -g ${SERVICE_USER} ${dirname(door)} && `
  return `${folder}exec ${dsc.join(' ')} agent --config ${NODE_CONFIG_FILE}`
}

function formatAnswer(
  { isDryRun, supervisor, looks }: AnswerOf<'setup'>,
  steps: readonly SetupStep[],
): string {
  const lines = steps.map((step) => describeStep(step, { isDryRun }))
  if (lines.length === 0) lines.push('nothing to change: this node is set up')
  if (supervisor !== null)
    lines.push(
      '',
      'systemd does not run here. Let a supervisor run this as root, then dsc setup once more:',
      `  ${supervisor}`,
    )
  for (const { user, command, output } of looks) lines.push('', `as ${user}: ${command}`, output)
  return lines.join('\n')
}
