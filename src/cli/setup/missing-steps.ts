import { dirname } from 'node:path'
import type { Config } from '../../config/config.js'
import { formatWritableFolders } from '../units/agent-unit.js'

/** The user of a node's service, and of its cache. */
export const SERVICE_USER = 'dsc'
/** Folders that the service may write by itself: systemd makes them for its user. */
const OWN_FOLDERS = ['/var/lib/dsc', '/run/dsc']
const UNIT_FOLDER = '/etc/systemd/system'

/** A user's wishes for the node: each an option, or the answer to a question. */
export interface WantedNode {
  readonly cacheRoot?: string | undefined
  readonly maxPercent?: number | undefined
  /** Sources by the name of their dataset. */
  readonly datasets: Readonly<Record<string, string>>
}

/** The parts of a node that this machine has already. */
export interface NodeFacts {
  readonly hasUser: boolean
  /** Whether the cache's folder is there and belongs to the service. */
  readonly hasRoot: boolean
  /** The service as systemd has it; undefined: systemd does not run here. */
  readonly service: { readonly isEnabled: boolean; readonly isActive: boolean } | undefined
  /** Whether a package has put the unit where systemd finds it. */
  readonly hasPackagedUnit: boolean
  /** The text of a file; undefined: it is missing. */
  readonly readText: (path: string) => string | undefined
}

/** Something that setting up changes, in the order in which it is done. */
export type SetupStep =
  | { readonly kind: 'user'; readonly path: null }
  | { readonly kind: 'folder'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string; readonly text: string }
  | { readonly kind: 'start' | 'restart'; readonly path: null }

/**
 * Lists the steps that make this machine a shared node; none if it is one. `configText` is the text of its dsc.yaml,
 * which `config` has read; `unitText` is the service, where no package has installed one.
 */
export function listMissingSteps(
  facts: NodeFacts,
  node: {
    readonly configPath: string
    readonly configText: string
    readonly config: Pick<Config, 'cache' | 'record' | 'agent'>
    readonly unit: string
    readonly unitText: string
  },
): readonly SetupStep[] {
  const { service } = facts
  const units = new Map<string, string>()
  if (service !== undefined && !facts.hasPackagedUnit) units.set(`${UNIT_FOLDER}/${node.unit}`, node.unitText)
  const writable = listWritableFolders(node.config)
  if (service !== undefined && writable.length > 0)
    units.set(`${UNIT_FOLDER}/${node.unit}.d/folders.conf`, formatWritableFolders(writable))
  const files = [[node.configPath, node.configText] as const, ...units]
    .filter(([path, text]) => facts.readText(path) !== text)
    .map(([path, text]) => ({ kind: 'file', path, text }) as const)
  const steps: SetupStep[] = []
  if (!facts.hasUser) steps.push({ kind: 'user', path: null })
  if (!facts.hasRoot) steps.push({ kind: 'folder', path: node.config.cache.root })
  steps.push(...files)
  if (service !== undefined && !(service.isEnabled && service.isActive))
    steps.push({ kind: 'start', path: null })
  else if (service !== undefined && files.length > 0) steps.push({ kind: 'restart', path: null })
  return steps
}

/** Folders that the sandbox of the service must let it write: those of the cache, the record and the door. */
function listWritableFolders({ cache, record, agent }: Pick<Config, 'cache' | 'record' | 'agent'>): string[] {
  const folders = [
    cache.root,
    ...(record.kind === 'sqlite' ? [dirname(record.path)] : []),
    ...(agent.door === undefined ? [] : [dirname(agent.door)]),
  ]
  const isOwn = (folder: string) => OWN_FOLDERS.some((own) => `${folder}/`.startsWith(`${own}/`))
  return [...new Set(folders.filter((folder) => !isOwn(folder)))]
}

/** Lists where a node's dsc.yaml differs from what a user wants, as `cache.root: expected /nvme/dsc, found /data/dsc`. */
export function listDifferences(
  { cacheRoot, maxPercent, datasets }: WantedNode,
  { cache, datasets: declared }: Pick<Config, 'cache' | 'datasets'>,
): readonly string[] {
  const differs = (key: string, wanted: string | number, found: string | number | undefined) =>
    wanted === found ? [] : [`${key}: expected ${wanted}, found ${found ?? 'none'}`]
  return [
    ...(cacheRoot === undefined ? [] : differs('cache.root', cacheRoot, cache.root)),
    ...(maxPercent === undefined ? [] : differs('cache.maxPercent', maxPercent, cache.policy.maxPercent)),
    ...Object.entries(datasets).flatMap(([name, source]) =>
      differs(`datasets.${name}`, source, declared.find((dataset) => dataset.name === name)?.source),
    ),
  ]
}

const WORDS = {
  user: { did: 'made', does: 'make', what: `the user ${SERVICE_USER}` },
  folder: { did: 'made', does: 'make', what: `for ${SERVICE_USER}` },
  file: { did: 'wrote', does: 'write', what: '' },
  start: { did: 'started', does: 'start', what: 'the service, now and at each boot' },
  restart: { did: 'restarted', does: 'restart', what: 'the service' },
} as const

/** `wrote /etc/dsc/dsc.yaml`, or `would write …` where nothing is done. */
export function describeStep(
  { kind, path }: SetupStep,
  { isDryRun }: { readonly isDryRun: boolean },
): string {
  const { did, does, what } = WORDS[kind]
  return [isDryRun ? `would ${does}` : did, path ?? '', what].filter((word) => word !== '').join(' ')
}

/** Reads `name=source` words into one table. Throws a RangeError that shows the wrong word. */
export function parseDatasetWords(words: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    words.map((word) => {
      const [, name, source] = /^([^=/:]+)=(.+)$/.exec(word) ?? []
      if (name === undefined || source === undefined)
        throw new RangeError(`expected name=URL, such as flowers=s3://ml-data/flowers/, found "${word}"`)
      return [name, source]
    }),
  )
}
