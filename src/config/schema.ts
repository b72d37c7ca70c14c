import { z } from 'zod'
import { parseDatasetName } from '../model/dataset.js'
import { isHostName } from '../model/host-name.js'
import { parseHostPort } from '../model/host-port.js'
import { parseSourceUrl, SOURCE_EXAMPLES } from '../model/source-url.js'
import { csi, namespaces } from './csi-schema.js'
import { format } from './format-schema.js'
import {
  byteRate,
  byteSize,
  duration,
  flag,
  integer,
  parsedWith,
  percent,
  text,
  waited,
} from './schema-fields.js'

/**
 * The keys of dsc.yaml. `explain-mistakes.ts` prints every `error` as "expected"; every description goes to
 * dsc.schema.json, which editors show. Loaded only if the file changed: zod costs 25 ms.
 */

const PARTY = /^(user|group|account|namespace):[^\s:,]+$/
const shares = z
  .record(z.string(), percent, {
    error: 'percentages by user:name, group:name, account:name or namespace:name',
  })
  .superRefine((value, context) => {
    for (const party of Object.keys(value)) {
      if (PARTY.test(party)) continue
      const message = `expected user:name, group:name, account:name or namespace:name, found ${JSON.stringify(party)}`
      context.addIssue({ code: 'custom', path: [party], message })
    }
    const sum = Object.values(value).reduce((total, part) => total + part, 0)
    if (sum <= 100 + 1e-9) return
    context.addIssue({ code: 'custom', message: `expected shares of at most 100% together, found ${sum}%` })
  })

const cache = z
  .strictObject({
    root: text('a folder').describe('Folder of the copies. Default: $XDG_CACHE_HOME/dsc.').optional(),
    maxDatasets: integer(1, 1_000_000).describe('Most copies at once. Default: no limit.').optional(),
    maxPercent: percent
      .describe(
        'Part of the file system that copies may use, in percent. Default: 80 if maxDatasets and minFree are not set, otherwise no limit.',
      )
      .optional(),
    minFree: byteSize.describe('Space that downloads leave free (50GiB). Default: 0.').optional(),
    lowWaterPercent: percent
      .describe(
        '`dsc cleanup` evicts idle copies until copies use at most this part. For tuning. Default: maxPercent.',
      )
      .optional(),
    shares: shares
      .describe(
        'Guaranteed parts of the quota, in percent: {group:vision: 50, user:ada: 20, account:nlp: 10, namespace:team-a: 20}. Default: none.',
      )
      .optional(),
  })
  .superRefine(({ shares: given = {}, maxDatasets = Number.POSITIVE_INFINITY }, context) => {
    for (const [party, part] of Object.entries(given)) {
      if ((maxDatasets * part) / 100 >= 1) continue
      const least = Math.ceil(10000 / maxDatasets) / 100
      const message = `expected at least ${least}%, one of maxDatasets (${maxDatasets}), found ${part}%`
      context.addIssue({ code: 'custom', path: ['shares', party], message })
    }
  })
  .superRefine((value, context) => {
    if (value.lowWaterPercent === undefined || value.maxPercent === undefined) return
    if (value.lowWaterPercent <= value.maxPercent) return
    context.addIssue({
      code: 'custom',
      path: ['lowWaterPercent'],
      message: `expected at most maxPercent (${value.maxPercent}), found ${value.lowWaterPercent}`,
    })
  })

const party = { error: 'user:name or group:name' }
const parties = z.array(z.string(party).regex(/^(user|group):[^\s:,]+$/, party), {
  error: 'a list of user:name and group:name',
})

const globs = z
  .array(text('a glob such as **/*.jpg'), { error: "a list of globs such as ['**/*.jpg']" })
  .optional()

const dataset = z.strictObject(
  {
    source: text(`a source such as ${SOURCE_EXAMPLES}`)
      .transform(
        parsedWith((raw) => {
          // A plain path means a folder beside the file; it becomes a URL once the file's folder is known.
          if (!/^(\.{0,2}|~)\//.test(raw)) parseSourceUrl(raw)
          return raw
        }),
      )
      .describe(`${SOURCE_EXAMPLES}, or a folder relative to this file (./photos).`),
    endpoint: z
      .url({ protocol: /^https?$/, error: 'a URL such as http://127.0.0.1:9000' })
      .describe('S3 server or hub. Default: AWS; HF_ENDPOINT or https://huggingface.co.')
      .optional(),
    region: text('a region such as us-east-1')
      .describe('S3 region. Default: as the AWS CLI finds it.')
      .optional(),
    pathStyle: flag.describe('Put the bucket in the path of URLs. Default: false.').optional(),
    anonymous: flag.describe('Send no credentials. Default: false.').optional(),
    requesterPays: flag.describe('Agree to pay for requests. Default: false.').optional(),
    profile: text('the name of an AWS profile').describe('AWS profile.').optional(),
    include: globs.describe('Globs of files to take. Default: all.'),
    exclude: globs.describe('Globs of files to leave out; wins over include. Default: none.'),
    format: format.optional(),
    columns: z
      .array(text('the name of a column'), { error: 'a list of columns such as [image, label]' })
      .min(1, { error: 'a list of columns such as [image, label]' })
      .describe('Columns that feeds read, in this order. Default: all.')
      .optional(),
    readers: parties
      .min(1, { error: 'a list of user:name and group:name' })
      .describe('Users and groups that may read its copies: [user:ada, group:vision]. Default: all.')
      .optional(),
    namespaces,
  },
  { error: 'a dataset with at least a source' },
)

const datasets = z
  .record(z.string(), dataset, { error: 'datasets by name' })
  .superRefine((value, context) => {
    for (const name of Object.keys(value)) parsedWith(parseDatasetName, [name])(name, context)
  })

const agent = z.strictObject({
  listen: text('host:port such as 127.0.0.1:7070')
    .transform(parsedWith(parseHostPort))
    .describe('Address that `dsc agent` listens on. Default: 127.0.0.1:7070.')
    .optional(),
  tokenFile: text('a file')
    .describe('File with the token of all agents; required beyond loopback. Default: none.')
    .optional(),
  advertise: z
    .url({ protocol: /^https?$/, error: 'a URL such as http://gpu-07:7070' })
    .describe('URL of this agent for other nodes. Default: from listen, or the host name.')
    .optional(),
  tls: z
    .strictObject({
      certFile: text('a file').describe('Certificate of this agent, PEM.'),
      keyFile: text('a file').describe('Its private key, PEM.'),
      caFile: text('a file')
        .describe('Certificates of the authority of all agents, PEM. Agents without TLS then get no token.')
        .optional(),
    })
    .describe('Encrypts traffic between agents. Default: none.')
    .optional(),
  forgetNodesAfter: duration
    .describe('Forgets nodes that were silent for this long (30d). Default: never.')
    .optional(),
  page: z
    .enum(['here', 'everywhere'], { error: 'here or everywhere' })
    .describe(
      'Machines that may open the page: this one (here) or all (everywhere). With a tokenFile, it needs the token or a link of `dsc agent link`. Default: here.',
    )
    .optional(),
  door: text('a Unix socket such as /run/dsc/dsc.sock, or none')
    .describe(
      'Unix socket at which every user of this machine may ask the agent, or none; in jobs/ beside it is one for containers. Default: /run/dsc/dsc.sock if the agent reads /etc/dsc/dsc.yaml, otherwise none.',
    )
    .optional(),
  admins: parties
    .describe(
      'Users and groups with all rights at the door: [user:ada, group:ops]. Default: root and the user of the agent.',
    )
    .optional(),
  undeclaredPerUser: byteSize
    .describe('Limit of each user at the door for sources that are not declared. Default: 100GiB.')
    .optional(),
  gateway: z
    .strictObject({
      listen: text('host:port such as 127.0.0.1:9300')
        .transform(parsedWith(parseHostPort))
        .describe('Address for S3 clients.'),
      keep: duration.describe('Time that a copy is kept after a client read it. Default: 30m.').optional(),
      ranges: z
        .enum(['proven', 'unproven'], { error: 'proven or unproven' })
        .describe(
          'Answer a range of an object that is being downloaded when it is verified (proven), often with the whole object, or when it is written (unproven). For tuning. Default: proven.',
        )
        .optional(),
      names: z
        .array(
          text('a host name such as data.example, or https://data.example').refine(isHostName, {
            error: 'a host name such as data.example, or https://data.example',
          }),
        )
        .describe(
          'More host names of the gateway; URLs for a proxy that encrypts (https://data.example). Requests for other names are refused.',
        )
        .optional(),
      users: z
        .union([z.literal('all'), z.array(integer(0, 2 ** 32 - 2))], {
          error: 'all, or a list of user ids such as [1000, 1001]',
        })
        .describe(
          'Users who need no key over loopback: all, or user ids. Default: the user of the agent, and root.',
        )
        .optional(),
    })
    .describe('A read-only S3 endpoint for the copies of this node. Default: none.')
    .optional(),
  csi,
})

const stage = z.strictObject({
  concurrency: integer(1, 1024)
    .describe('Most requests at once for one download. For tuning. Default: 64.')
    .optional(),
  stallTimeout: waited
    .describe('Retries a request that brings no bytes for this long. For tuning. Default: 30s.')
    .optional(),
  maxRequests: integer(1, 1_000_000)
    .describe('Most requests at once on this node, shared by its downloads. Default: no limit.')
    .optional(),
  bandwidthLimit: byteRate
    .describe('Bandwidth of this node, shared by its downloads (500MB/s, 4Gbit/s). Default: no limit.')
    .optional(),
})

const cluster = z.strictObject({
  trustNodes: z
    .boolean({ error: 'true or false' })
    .describe('Trust the digest of another node instead of the checksum of the source. Default: false.')
    .optional(),
})

/** Schema of dsc.yaml. Input: the file as people write it. Output: bytes, milliseconds and plain numbers. */
export const fileSchema = z
  .strictObject(
    {
      record: text('sqlite:///file, postgres://user@host/database or a file')
        .describe(
          'sqlite:///file, postgres://user@host/database, or a file. Default: record.db in cache.root, or $XDG_STATE_HOME/dsc/record.db without cache.root.',
        )
        .optional(),
      node: text('the name of this node, in quotes if it is a number')
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, { error: "a name of letters, digits, '.', '_' and '-'" })
        .describe('Name of this node in the record. Default: the host name.')
        .optional(),
      cache: cache.describe('The copies on this node, and their limits.').optional(),
      datasets: datasets
        .describe(
          'Datasets by name: {flowers: s3://bucket/flowers/}, or with the keys below. `dsc dataset add` adds more.',
        )
        .optional(),
      agent: agent.describe('The process that serves copies to other nodes.').optional(),
      cluster: cluster.describe('What nodes take from each other.').optional(),
      stage: stage.describe('How downloads behave.').optional(),
      history: duration
        .describe('How far `dsc history`, `dsc why` and `dsc report` look back. Default: 92d.')
        .optional(),
    },
    { error: 'a mapping of keys to values' },
  )
  .meta({ title: 'dsc.yaml', description: 'Configuration of dsc.' })

/** A checked dsc.yaml: sizes in bytes, durations in milliseconds, percentages as numbers; paths as written. */
export type FileSettings = z.output<typeof fileSchema>

/** JSON Schema of dsc.yaml as people write it, for editors. */
export function createJsonSchema(): object {
  return z.toJSONSchema(fileSchema, {
    io: 'input',
    override: ({ zodSchema, jsonSchema }) => {
      // A source alone stands for a dataset: `parse-settings.ts` reads it so.
      if (zodSchema === dataset) Object.assign(jsonSchema, { type: ['object', 'string'] })
    },
  })
}
