import { InvalidArgumentError } from 'commander'

/** Parses `a,b,c` into at least one node name. */
export function parseNodes(raw: string): readonly string[] {
  const nodes = raw
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '')
  if (nodes.length > 0) return nodes
  throw new InvalidArgumentError(
    `expected names of nodes such as gpu-01,gpu-02, found ${JSON.stringify(raw)}`,
  )
}
