import { z } from 'zod'
import { ACCOUNT_OUTPUTS } from './account-outputs.js'
import { CACHE_OUTPUT_LINES, CACHE_OUTPUTS } from './cache-outputs.js'
import { CLUSTER_OUTPUTS } from './cluster-outputs.js'
import { EXCHANGE_OUTPUTS } from './exchange-outputs.js'
import { FEED_OUTPUTS, FEED_TRIAL_OUTPUTS } from './feed-outputs.js'
import { MEMORY_OUTPUTS } from './memory-outputs.js'

/**
 * What each command prints on stdout with `--json`, by its words; `error` is what any of them prints on stderr.
 * Fields are only ever added.
 */
export const OUTPUTS = {
  ...CACHE_OUTPUTS,
  ...ACCOUNT_OUTPUTS,
  ...CLUSTER_OUTPUTS,
  ...FEED_OUTPUTS,
  ...FEED_TRIAL_OUTPUTS,
  ...EXCHANGE_OUTPUTS,
  ...MEMORY_OUTPUTS,
} as const

/** The JSON Schema of every output, as `$defs` by the command's words. Readers must expect fields that are not in it. */
export function createOutputSchema(): object {
  const lines = Object.entries(CACHE_OUTPUT_LINES).map(
    ([words, schema]) => [`${words} --ndjson`, schema] as const,
  )
  const all = z.object({ ...OUTPUTS, ...Object.fromEntries(lines) })
  const { properties, $defs } = z.toJSONSchema(all, {
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  })
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'What dsc prints with --json, by command',
    $defs: { ...$defs, ...properties },
  }
}
