import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { z } from 'zod'

const LARGEST_CARD_BYTES = 4 << 20

const paths = z.union([z.string().transform((each) => [each]), z.array(z.string())])
const CONFIG = z.looseObject({
  config_name: z.string().optional(),
  default: z.boolean().optional(),
  // The short form, only paths, is the split train.
  data_files: z
    .union([
      paths.transform((path) => [{ split: 'train', path }]),
      z.array(z.looseObject({ split: z.string(), path: paths })),
    ])
    .optional()
    .catch(undefined),
})
const CARD = z.looseObject({ configs: z.array(CONFIG) })

/**
 * Globs of a split's files by the card of a hub's dataset: `configs:` in the head of its README.md, of the default
 * configuration. Undefined if the card does not say.
 */
export function readCardSplit(folder: string, split: string): readonly string[] | undefined {
  const head = readHead(join(folder, 'README.md'))
  if (head === undefined) return undefined
  const { data } = CARD.safeParse(head)
  const configs = data?.configs ?? []
  const chosen =
    configs.find((each) => each.default) ??
    configs.find(({ config_name }) => config_name === 'default') ??
    configs[0]
  const found = chosen?.data_files?.filter((each) => each.split === split).flatMap(({ path }) => path)
  return found && found.length > 0 ? found : undefined
}

function readHead(path: string): unknown {
  const card = statSync(path, { throwIfNoEntry: false })
  if (!card?.isFile() || card.size > LARGEST_CARD_BYTES) return undefined
  const [, head] = /^---\r?\n([\s\S]*?)\n---/.exec(readFileSync(path, 'utf8')) ?? []
  if (head === undefined) return undefined
  try {
    return parse(head, { maxAliasCount: 0 })
  } catch {
    return undefined // a card is written for people: the names of the files say the rest
  }
}
