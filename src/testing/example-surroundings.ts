import type { NodeSurroundings } from '../cache/api/node-api.js'
import { createOwnApi } from '../cache/api/node-api.js'
import type { Cache } from '../cache/cache.js'
import type { Config } from '../config/config.js'

/** Messages from opening something. */
export interface Told {
  readonly notes: string[]
  readonly warnings: string[]
  /** Lines of progress; undefined: cleared. */
  readonly progress: (string | undefined)[]
}

/** Surroundings for opening datasets by name, over a test's cache; `config` replaces dsc.yaml. */
export function exampleSurroundings(
  cache: Cache,
  signal: AbortSignal,
  config: Partial<Config> = {},
): NodeSurroundings & { readonly told: Told } {
  const told: Told = { notes: [], warnings: [], progress: [] }
  const whole: Config = {
    filePath: undefined,
    record: { kind: 'sqlite', url: 'sqlite:///nowhere', path: '/nowhere' },
    node: cache.node,
    cache: { root: cache.root, policy: cache.policy },
    datasets: [],
    cluster: { trustsNodes: false },
    csi: { driver: 'dsc.io', kubelet: '/nowhere', namespaces: {}, sources: {} },
    agent: {
      listen: { host: '127.0.0.1', port: 0 },
      admins: [],
      undeclaredBytesPerUser: 0,
      isPageEverywhere: false,
    },
    stage: { stallTimeoutMs: 60_000 },
    historyMs: 1,
    origins: {},
    ...config,
  }
  return {
    told,
    report: {
      note: (sentence) => void told.notes.push(sentence),
      warn: (sentence) => void told.warnings.push(sentence),
      progress: (line) => void told.progress.push(line),
    },
    signal,
    environment: {},
    nowMs: cache.nowMs,
    config: async () => whole,
    openRecord: async () => cache.record,
    openCache: async () => cache,
    openApi: async () => createOwnApi(cache),
    askPasses: async () => undefined,
    openSource: cache.openSource,
  }
}
