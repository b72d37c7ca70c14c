import { redactUrl } from '../failure/redact.js'
import { formatByteSize } from '../model/byte-size.js'
import { formatDuration } from '../model/duration.js'
import { formatHostPort } from '../model/host-port.js'
import type { Config, Origin } from './config.js'

/** One effective value and its origin. Without the secret parts of URLs. */
interface ListedSetting {
  /** Dotted key as in dsc.yaml. */
  readonly key: string
  /** Bytes, milliseconds, text, lists; null = not set, which the text explains. */
  readonly value: string | number | boolean | readonly string[] | null
  /** The value as people read it. */
  readonly text: string
  readonly origin: Origin
}

/** Lists every effective value in the order of the documentation. */
export function listSettings(config: Config): ListedSetting[] {
  const { cache, agent, cluster, stage } = config
  const { policy } = cache
  const row = (key: string, value: ListedSetting['value'] | undefined, text?: string): ListedSetting => ({
    key,
    value: value ?? null,
    text: text ?? (Array.isArray(value) ? value.join(', ') : String(value)),
    origin: config.origins[key] ?? { kind: 'default' },
  })
  const bytes = (key: string, value: number | undefined, unit: 'bytes' | 'bytes/s') =>
    row(key, value, value === undefined ? 'no limit' : formatByteSize(value) + (unit === 'bytes' ? '' : '/s'))
  const percent = (key: string, value: number | undefined, none: string) =>
    row(key, value, value === undefined ? none : `${value}%`)
  return [
    row('record', redactUrl(config.record.url)),
    row('node', config.node),
    row('cache.root', cache.root),
    row('cache.maxDatasets', policy.maxDatasets, String(policy.maxDatasets ?? 'no limit')),
    percent('cache.maxPercent', policy.maxPercent, 'no limit'),
    bytes('cache.minFree', policy.minFreeBytes, 'bytes'),
    percent('cache.lowWaterPercent', policy.lowWaterPercent, 'as maxPercent'),
    row(
      'cache.shares',
      policy.shares?.map(({ party, percent }) => `${party} ${percent}%`),
      policy.shares === undefined ? 'none' : undefined,
    ),
    row('agent.listen', formatHostPort(agent.listen)),
    row('agent.tokenFile', agent.tokenFile, agent.tokenFile ?? 'none'),
    row('agent.door', agent.door, agent.door ?? 'none'),
    row('agent.admins', agent.admins, agent.admins.length === 0 ? 'root and the owner' : undefined),
    row('agent.page', agent.isPageEverywhere ? 'everywhere' : 'here'),
    row('agent.gateway', agent.gateway ? formatHostPort(agent.gateway.listen) : 'none'),
    row('cluster.trustNodes', cluster.trustsNodes),
    row('stage.concurrency', stage.concurrency, String(stage.concurrency ?? 'up to 64')),
    row('stage.stallTimeout', stage.stallTimeoutMs, formatDuration(stage.stallTimeoutMs)),
    row('stage.maxRequests', stage.maxRequests, String(stage.maxRequests ?? 'no limit')),
    bytes('stage.bandwidthLimit', stage.bandwidthBytesPerSecond, 'bytes/s'),
    row('history', config.historyMs, formatDuration(config.historyMs)),
    ...config.datasets.flatMap(({ name, dialect = {}, ...dataset }) => [
      ...Object.entries(dataset)
        .filter(([, value]) => !Array.isArray(value) || value.length > 0)
        .map(([key, value]) =>
          row(`datasets.${name}.${key}`, typeof value === 'string' ? hideSecrets(value) : value),
        ),
      ...Object.entries(dialect).map(([key, value]) =>
        row(`datasets.${name}.format.${dataset.format}.${key}`, value),
      ),
    ]),
  ]
}

/** As written unless it contains a secret: a parsed URL may gain a slash at its end. */
function hideSecrets(text: string): string {
  const redacted = redactUrl(text)
  return redacted === `${text}/` ? text : redacted
}
