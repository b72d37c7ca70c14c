import { z } from 'zod'
import { parseDatasetName } from '../model/dataset.js'
import { isHostName } from '../model/host-name.js'
import { parseHostPort } from '../model/host-port.js'
import { FORMAT_NAMES } from '../model/sample-formats.js'
import { parseSourceUrl, SOURCE_EXAMPLES } from '../model/source-url.js'
import { csi, namespaces } from './csi-schema.js'
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
    root: text('a folder')
      .describe('Folder that holds the copies. Default: $XDG_CACHE_HOME/dsc. Relative to this file.')
      .optional(),
    maxDatasets: integer(1, 1_000_000).describe('Most copies on this node. Default: no limit.').optional(),
    maxPercent: percent
      .describe(
        'Most that copies may take of the file system that holds root, in percent. Default: 80 if neither maxDatasets nor minFree is set, else no limit.',
      )
      .optional(),
    minFree: byteSize
      .describe('Free space that a download must leave on the file system, bytes (50GiB). Default: 0.')
      .optional(),
    lowWaterPercent: percent
      .describe(
        '`dsc cleanup` deletes idle copies until at most this share of the file system is taken by copies. Default: maxPercent.',
      )
      .optional(),
    shares: shares
      .describe(
        'What is guaranteed to users, groups, Slurm accounts and namespaces of what copies may take here, in percent: {group:vision: 50, user:alice: 20}. What one leaves unused, others may borrow. Default: none.',
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
      .describe('S3 endpoint, or URL of a hub. Default: AWS; HF_ENDPOINT, else https://huggingface.co.')
      .optional(),
    region: text('a region such as us-east-1')
      .describe('Default: from the AWS configuration files or environment.')
      .optional(),
    pathStyle: flag.describe('Put the bucket into the path of URLs. Default: false.').optional(),
    anonymous: flag.describe('Send no credentials. Default: false.').optional(),
    requesterPays: flag.describe('Agree to pay for requests. Default: false.').optional(),
    profile: text('the name of an AWS profile')
      .describe('Profile of the AWS configuration files.')
      .optional(),
    include: globs.describe('Globs over keys below the prefix. Default: every object.'),
    exclude: globs.describe('Globs over keys to leave out; these win over include. Default: none.'),
    format: z
      .enum(FORMAT_NAMES, { error: `one of ${FORMAT_NAMES.join(', ')}` })
      .describe('How feeds find samples in the files. Default: by what most bytes of a folder are.')
      .optional(),
    columns: z
      .array(text('the name of a column'), { error: 'a list of columns such as [image, label]' })
      .min(1, { error: 'a list of columns such as [image, label]' })
      .describe('Columns of rows that feeds read, in this order. Default: all.')
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

const admin = { error: 'user:name or group:name' }

const agent = z.strictObject({
  listen: text('host:port such as 127.0.0.1:7070')
    .transform(parsedWith(parseHostPort))
    .describe('Where `dsc agent` listens, host:port. Default: 127.0.0.1:7070.')
    .optional(),
  tokenFile: text('a file')
    .describe(
      'File that holds the token shared by all agents; needed to listen beyond loopback. Default: none.',
    )
    .optional(),
  advertise: z
    .url({ protocol: /^https?$/, error: 'a URL such as http://gpu-07:7070' })
    .describe('URL that other nodes reach this agent at. Default: from listen, or the host name.')
    .optional(),
  tls: z
    .strictObject({
      certFile: text('a file').describe('Certificate of this agent, PEM.'),
      keyFile: text('a file').describe('Its private key, PEM.'),
      caFile: text('a file').describe('Certificates that sign those of all agents, PEM.').optional(),
    })
    .describe('Encrypts what agents send each other. Default: none.')
    .optional(),
  forgetNodesAfter: duration
    .describe('Copies of a node that nobody has heard of for so long leave the record (30d). Default: never.')
    .optional(),
  page: z
    .enum(['here', 'everywhere'], { error: 'here or everywhere' })
    .describe(
      'Who may look at the page that the agent serves: whoever is on this machine (here), or other machines, too (everywhere). Either needs the token or a link of `dsc agent link` where there is a tokenFile. Default: here.',
    )
    .optional(),
  door: text('a Unix socket such as /run/dsc/dsc.sock, or none')
    .describe(
      'Unix socket at which everybody on this machine may ask the agent; it alone then needs rights on the cache. Default: /run/dsc/dsc.sock for an agent that reads /etc/dsc/dsc.yaml, else none.',
    )
    .optional(),
  admins: z
    .array(z.string(admin).regex(/^(user|group):[^\s:,]+$/, admin), {
      error: 'a list of user:name and group:name',
    })
    .describe(
      'Users and groups that may lock, evict and declare at the door, and end leases of others. Default: root and the user of the agent.',
    )
    .optional(),
  gateway: z
    .strictObject({
      listen: text('host:port such as 127.0.0.1:9300')
        .transform(parsedWith(parseHostPort))
        .describe('Where the agent answers S3 clients, host:port.'),
      keep: duration
        .describe('How long a copy is held after it was last read through the gateway. Default: 30m.')
        .optional(),
      ranges: z
        .enum(['proven', 'unproven'], { error: 'proven or unproven' })
        .describe(
          'When a range of a large object that is still arriving is answered: once its bytes are proven (proven), which is with the whole object where the store has one checksum for it, or as soon as they are written (unproven). Default: proven.',
        )
        .optional(),
      names: z
        .array(
          text('a host name such as data.example, or https://data.example').refine(isHostName, {
            error: 'a host name such as data.example, or https://data.example',
          }),
        )
        .describe(
          'Host names under which S3 clients reach it, beside localhost, addresses and the name of the machine; as a URL where they speak with a proxy that encrypts (https://data.example). Requests for other names are refused.',
        )
        .optional(),
      users: z
        .union([z.literal('all'), z.array(integer(0, 2 ** 32 - 2))], {
          error: 'all, or a list of user ids such as [1000, 1001]',
        })
        .describe(
          'Local users whose unsigned requests over loopback are answered: all, or user ids. Default: the user of the agent, and root.',
        )
        .optional(),
    })
    .describe('A read-only S3 endpoint over the copies of this node. Default: none.')
    .optional(),
  csi,
})

const stage = z.strictObject({
  concurrency: integer(1, 1024)
    .describe('Most requests in flight for one download. Found while it runs, up to this. Default: 64.')
    .optional(),
  stallTimeout: waited
    .describe('A part that brings no bytes for so long is asked for again (30s). Default: 30s.')
    .optional(),
  maxRequests: integer(1, 1_000_000)
    .describe(
      'Most requests in flight on this node, shared by everything that is being staged on it. Default: no limit.',
    )
    .optional(),
  bandwidthLimit: byteRate
    .describe(
      'Most that this node takes, shared by everything that is being staged on it (500MB/s, 4Gbit/s). Default: no limit.',
    )
    .optional(),
})

const cluster = z.strictObject({
  trustNodes: z
    .boolean({ error: 'true or false' })
    .describe(
      'Whether bytes with a digest that another node has verified need no checksum of the source. Default: false.',
    )
    .optional(),
})

/** Schema of dsc.yaml. Input: the file as people write it. Output: bytes, milliseconds and plain numbers. */
export const fileSchema = z
  .strictObject(
    {
      record: text('sqlite:///file, postgres://user@host/database or a file')
        .describe(
          'Where the record lives: sqlite:///file, postgres://user@host/database, or a file relative to this file. Default: record.db in cache.root, or $XDG_STATE_HOME/dsc/record.db where cache.root is not set either.',
        )
        .optional(),
      node: text('the name of this node, in quotes if it is a number')
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, { error: "a name of letters, digits, '.', '_' and '-'" })
        .describe('Name of this node in the record. Default: the host name.')
        .optional(),
      cache: cache.describe('The copies on this node and the policy that bounds them.').optional(),
      datasets: datasets.describe('Datasets by name; more can be added with `dsc dataset add`.').optional(),
      agent: agent.describe('The daemon that serves copies and samples to other nodes.').optional(),
      cluster: cluster.describe('What nodes take from each other.').optional(),
      stage: stage.describe('How downloads behave.').optional(),
      history: duration
        .describe(
          'How long `dsc history` and `dsc why` can look back; `dsc cleanup` forgets what is older, of all nodes. Default: 92d.',
        )
        .optional(),
    },
    { error: 'a mapping of keys to values' },
  )
  .meta({ title: 'dsc.yaml', description: 'Configuration of dsc.' })

/** A checked dsc.yaml: sizes in bytes, durations in milliseconds, percentages as numbers; paths as written. */
export type FileSettings = z.output<typeof fileSchema>

/** JSON Schema of dsc.yaml as people write it, for editors. */
export function createJsonSchema(): object {
  return z.toJSONSchema(fileSchema, { io: 'input' })
}
