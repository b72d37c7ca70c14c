import { Network } from './synthetic-networks.js'
import type { SyntheticNode } from './synthetic-profile.js'

/** Sizes of a transformer; `experts`, of which each token uses two, 0 for a plain one. */
interface TransformerShape {
  readonly batch: number
  readonly context: number
  readonly width: number
  readonly hidden: number
  readonly blocks: number
  readonly vocabulary: number
  readonly experts: number
}

/** A Llama: norms before attention and a gated feed-forward or one per expert. Blocks are `layers.0`, `layers.1`, …. */
export function llama(shape: TransformerShape): SyntheticNode[] {
  const { batch, context, width, blocks, vocabulary } = shape
  const rows = batch * context
  const net = new Network()
  let x = net.linear('embed', net.batch(rows), { rows, inF: 1, outF: width })
  for (let block = 0; block < blocks; block++) {
    const at = `layers.${block}`
    const qkv = net.linear(`${at}.qkv`, net.norm(`${at}.norm1`, x, width), {
      rows,
      inF: width,
      outF: 3 * width,
    })
    const mixed = net.attention(`${at}.attn`, qkv, { rows, width, context })
    x = net.add(`${at}.add1`, [net.linear(`${at}.o`, mixed, { rows, inF: width, outF: width }), x])
    x = net.add(`${at}.add2`, [...addFeedForward(net, at, { ...shape, rows, x }), x])
  }
  net.linear('head', net.norm('norm', x, width), { rows, inF: width, outF: vocabulary })
  return net.nodes
}

/** Adds one gated feed-forward, or the experts with an equal share of the rows each. */
function addFeedForward(
  net: Network,
  at: string,
  { rows, x, width, hidden, experts }: TransformerShape & { readonly rows: number; readonly x: number },
): number[] {
  const normed = net.norm(`${at}.norm2`, x, width)
  const feed = (name: string, input: number, own: number) => {
    const gate = net.gelu(
      `${name}.act`,
      net.linear(`${name}.gate`, input, { rows: own, inF: width, outF: hidden }),
    )
    const up = net.linear(`${name}.up`, input, { rows: own, inF: width, outF: hidden })
    return net.linear(`${name}.down`, net.add(`${name}.mul`, [gate, up]), {
      rows: own,
      inF: hidden,
      outF: width,
    })
  }
  if (experts === 0) return [feed(`${at}.mlp`, normed, rows)]
  const share = 2 / experts
  const parts = Array.from({ length: experts }, (_, expert) => {
    const name = `${at}.experts.${expert}`
    return feed(name, net.resize(`${name}.take`, normed, share), Math.ceil(rows * share))
  })
  return [net.resize(`${at}.combine`, net.concat(`${at}.gather`, parts), 1 / 2)]
}
