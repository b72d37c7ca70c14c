import { join } from 'node:path'
import { DscError } from '../failure/dsc-error.js'
import type { Dataset } from '../model/dataset.js'
import type { CachePolicy } from '../model/policy.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../model/stall-timeout.js'
import type { Config, Origin, RecordLocation } from './config.js'
import { chooseDoor, NODE_CONFIG_FILE, NODE_DOOR, placeDoor } from './find-door.js'
import type { ParsedSettings } from './parse-settings.js'
import { type PathBase, resolvePath, resolveRecord, resolveSource } from './resolve-path.js'
import type { FileSettings } from './schema.js'

/** Values of flags, which override everything else. */
export interface Overrides {
  /** Overrides `stage.bandwidthLimit`, bytes per second. */
  readonly bandwidthBytesPerSecond?: number | undefined
}

interface Surroundings extends ParsedSettings {
  readonly filePath: string | undefined
  /** A nearer dsc.yaml that dsc ignores, because others could have written it. */
  readonly ignoredFile?: Config['ignoredFile']
  /** Base folder of relative paths in the file. */
  readonly folder: string
  readonly workingDirectory: string
  readonly homeDirectory: string
  readonly cacheHome: string
  readonly stateHome: string
  readonly hostName: string
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly overrides: Overrides
}

const DEFAULT_LISTEN = { host: '127.0.0.1', port: 7070 }
/** A large model or two: enough to try something out, too little to fill a disk. */
const DEFAULT_UNDECLARED_BYTES = 100 * 1024 ** 3
/** Applies if the user sets no limit at all, so that a cache never fills a disk by default. */
const DEFAULT_MAX_PERCENT = 80

/** A value, the base of its path, and its origin. */
interface Chosen {
  readonly value: string
  readonly base: PathBase
  readonly origin: Origin
}

/** Completes checked settings with flags, environment and defaults. Touches no file. */
export function resolveSettings(from: Surroundings): Config {
  const { settings, lines, filePath } = from
  const origins: Record<string, Origin> = {}
  const noteOrigin = (key: string) => {
    const line = lines[key]
    origins[key] =
      filePath === undefined || line === undefined
        ? { kind: 'default' }
        : { kind: 'file', path: filePath, line }
    return origins[key]
  }
  const choose = (key: keyof typeof VARIABLES, inFile: string | undefined): Chosen | undefined => {
    const chosen = readVariable(from, key) ?? {
      value: inFile,
      base: { folder: from.folder, homeDirectory: from.homeDirectory },
      origin: noteOrigin(key),
    }
    origins[key] = chosen.origin
    return chosen.value === undefined ? undefined : { ...chosen, value: chosen.value }
  }

  const root = choose('cache.root', settings.cache?.root)
  const cacheRoot = root ? resolvePath(root.value, root.base) : join(from.cacheHome, 'dsc')
  const record = choose('record', settings.record)
  for (const key of POLICY_KEYS) noteOrigin(`cache.${key}`)
  for (const key of AGENT_KEYS) noteOrigin(key)
  for (const key of [...STAGE_KEYS, 'cluster.trustNodes', 'history']) noteOrigin(key)
  if (from.environment.DSC_ADVERTISE)
    origins['agent.advertise'] = { kind: 'environment', variable: 'DSC_ADVERTISE' }
  if (from.overrides.bandwidthBytesPerSecond !== undefined)
    origins['stage.bandwidthLimit'] = { kind: 'flag', flag: '--bandwidth-limit' }
  for (const key of Object.keys(lines)) if (/^datasets\.[^.]/.test(key)) noteOrigin(key)

  const base = { folder: from.folder, homeDirectory: from.homeDirectory }
  return deepFreeze<Config>({
    filePath,
    ignoredFile: from.ignoredFile,
    record: record
      ? resolveRecord(record.value, record.base, describeOrigin('record', record.origin))
      : // One cache has one record, also where two users name it.
        sqliteAt(root ? join(cacheRoot, 'record.db') : join(from.stateHome, 'dsc', 'record.db')),
    node: checkNode(choose('node', settings.node), from.hostName),
    cache: { root: cacheRoot, policy: createPolicy(settings.cache) },
    datasets: Object.entries(settings.datasets ?? {}).map(([name, dataset]) =>
      createDataset(name, dataset, base),
    ),
    cluster: { trustsNodes: settings.cluster?.trustNodes ?? false },
    csi: resolveCsi(settings),
    agent: resolveAgent(settings.agent, base, { filePath, ownUrl: from.environment.DSC_ADVERTISE }),
    door: resolveDoor(from, base),
    stage: resolveStage(settings.stage, from.overrides.bandwidthBytesPerSecond),
    historyMs: settings.history ?? DEFAULT_HISTORY_MS,
    origins,
  })
}

/** Where commands find the door of this node's service; undefined: this configuration counts, and no service. */
function resolveDoor(from: Surroundings, base: PathBase): Config['door'] {
  const chosen = chooseDoor(from)
  if (chosen !== 'usual') return chosen
  const path = placeDoor(from.settings.agent?.door ?? NODE_DOOR, base)
  return path === undefined ? undefined : { path, isNamed: false }
}

function resolveAgent(
  agent: FileSettings['agent'],
  base: PathBase,
  { filePath, ownUrl }: { readonly filePath: string | undefined; readonly ownUrl: string | undefined },
): Config['agent'] {
  const pathOf = (path: string | undefined) => (path === undefined ? undefined : resolvePath(path, base))
  return {
    listen: agent?.listen ?? DEFAULT_LISTEN,
    tokenFile: pathOf(agent?.tokenFile),
    advertise: (ownUrl ? checkUrl(ownUrl) : agent?.advertise)?.replace(/\/+$/, ''),
    tls: agent?.tls && {
      certFile: resolvePath(agent.tls.certFile, base),
      keyFile: resolvePath(agent.tls.keyFile, base),
      caFile: pathOf(agent.tls.caFile),
    },
    forgetNodesAfterMs: agent?.forgetNodesAfter,
    door: placeDoor(agent?.door ?? (filePath === NODE_CONFIG_FILE ? NODE_DOOR : undefined), base),
    admins: agent?.admins ?? [],
    undeclaredBytesPerUser: agent?.undeclaredPerUser ?? DEFAULT_UNDECLARED_BYTES,
    isPageEverywhere: agent?.page === 'everywhere',
    gateway: agent?.gateway && {
      listen: agent.gateway.listen,
      keepMs: agent.gateway.keep ?? DEFAULT_GATEWAY_KEEP_MS,
      ranges: agent.gateway.ranges ?? 'proven',
      names: agent.gateway.names ?? [],
      users: agent.gateway.users,
    },
  }
}

function resolveCsi({ agent, datasets = {} }: FileSettings): Config['csi'] {
  const { driver = 'dsc.io', kubelet = '/var/lib/kubelet', sources = {} } = agent?.csi ?? {}
  // Kubernetes names no user of this machine: a dataset with readers is for the namespaces that its file names.
  const namespaces = Object.entries(datasets).flatMap(([name, dataset]) => {
    const named = dataset.namespaces ?? (dataset.readers && [])
    return named ? [[name, named] as const] : []
  })
  return { driver, kubelet, sources, namespaces: Object.fromEntries(namespaces) }
}

/** DSC_ADVERTISE, which differs between nodes that share one dsc.yaml. */
function checkUrl(raw: string): string {
  if (URL.canParse(raw) && /^https?:/.test(raw)) return raw
  throw new DscError(
    'CONFIG_INVALID',
    `DSC_ADVERTISE: expected a URL such as http://10.0.0.7:7070, found ${JSON.stringify(raw)}`,
  )
}

/** `--bandwidth-limit` overrides the file. */
function resolveStage(stage: FileSettings['stage'], flagBytesPerSecond: number | undefined): Config['stage'] {
  return {
    concurrency: stage?.concurrency,
    stallTimeoutMs: stage?.stallTimeout ?? DEFAULT_STALL_TIMEOUT_MS,
    maxRequests: stage?.maxRequests,
    bandwidthBytesPerSecond: flagBytesPerSecond ?? stage?.bandwidthLimit,
  }
}

/** A quarter of a year. */
const DEFAULT_HISTORY_MS = 92 * 24 * 3_600_000

/** Jobs return for epochs and evaluation runs within this time; an idle copy is not held for a whole working day. */
export const DEFAULT_GATEWAY_KEEP_MS = 30 * 60_000

const AGENT_KEYS = [
  'agent.listen',
  'agent.tokenFile',
  'agent.advertise',
  'agent.tls',
  'agent.forgetNodesAfter',
  'agent.door',
  'agent.admins',
  'agent.undeclaredPerUser',
  'agent.page',
  'agent.gateway',
  'agent.csi',
]

const STAGE_KEYS = ['stage.concurrency', 'stage.stallTimeout', 'stage.maxRequests', 'stage.bandwidthLimit']

const POLICY_KEYS = ['maxDatasets', 'maxPercent', 'minFree', 'lowWaterPercent', 'shares'] as const

/** Environment variables, by the setting that each overrides. */
const VARIABLES = { record: 'DSC_RECORD', node: 'DSC_NODE', 'cache.root': 'DSC_CACHE_ROOT' } as const

function readVariable(from: Surroundings, key: keyof typeof VARIABLES): Chosen | undefined {
  const { environment, workingDirectory: folder, homeDirectory } = from
  const variable = VARIABLES[key]
  const value = environment[variable]
  // An empty variable counts as unset, as everywhere in the XDG specification.
  if (!value) return undefined
  return { value, base: { folder, homeDirectory }, origin: { kind: 'environment', variable } }
}

function describeOrigin(key: string, origin: Origin): string {
  if (origin.kind === 'file') return `${origin.path}:${origin.line}: ${key}`
  return origin.kind === 'environment' ? origin.variable : key
}

function checkNode(node: Chosen | undefined, hostName: string): string {
  if (node === undefined) return hostName
  if (/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(node.value)) return node.value
  throw new DscError(
    'CONFIG_INVALID',
    `${describeOrigin('node', node.origin)}: expected a name of letters, digits, '.', '_' and '-', found ${JSON.stringify(node.value)}`,
  )
}

function sqliteAt(path: string): RecordLocation {
  return { kind: 'sqlite', url: `sqlite://${path}`, path }
}

function createPolicy(cache: FileSettings['cache']): CachePolicy {
  const { maxDatasets, maxPercent, minFree, lowWaterPercent, shares } = cache ?? {}
  const isUnlimited = maxDatasets === undefined && maxPercent === undefined && minFree === undefined
  return {
    maxDatasets,
    maxPercent: isUnlimited ? DEFAULT_MAX_PERCENT : maxPercent,
    minFreeBytes: minFree,
    lowWaterPercent,
    shares: shares && Object.entries(shares).map(([party, percent]) => ({ party, percent })),
  }
}

function createDataset(
  name: string,
  settings: NonNullable<FileSettings['datasets']>[string],
  base: PathBase,
): Dataset {
  const { source, include, exclude, format, namespaces: _, ...access } = settings
  // Absent keys are absent in `access` too, so that cached JSON and zod's result are identical.
  return {
    name,
    source: resolveSource(source, base),
    ...(access as Omit<Dataset, 'name' | 'source' | 'include' | 'exclude' | 'format' | 'dialect'>),
    ...(format !== undefined && readFormat(format)),
    include: include ?? [],
    exclude: exclude ?? [],
  }
}

function readFormat(
  format: NonNullable<NonNullable<FileSettings['datasets']>[string]['format']>,
): Pick<Dataset, 'format' | 'dialect'> {
  if (typeof format === 'string') return { format }
  return 'csv' in format ? { format: 'csv', dialect: format.csv } : { format: 'tsv', dialect: format.tsv }
}

function deepFreeze<T extends object>(value: T): T {
  for (const child of Object.values(value)) if (typeof child === 'object' && child !== null) deepFreeze(child)
  return Object.freeze(value)
}
