// dsc's exchange beside gloo, over links of several speeds (network namespaces, shaped by tc; that needs root) and over
// shared memory; accuracy; convergence. `--parts hooks`: PyTorch's hooks and dsc's alone, over the first link, between so many
// `--ranks`; `--parts convergence`: the final loss with five seeds.
import { runPython } from './harness/processes.mjs'

const SMALL = [
  '--width',
  64,
  '--layers',
  2,
  '--loads',
  'batch:8',
  '--level-loads',
  'wait:10',
  '--gpt-steps',
  3,
  '--seeds',
  1,
]

export const benchmark = {
  page: 'exchange.md',
  options: {
    links: '1gbit,10gbit,loopback',
    rounds: 15,
    repeats: 15,
    parts: 'hooks,convergence,rest',
    ranks: '2,4',
  },
  smoke: { links: 'loopback', rounds: 1, repeats: 1, parts: 'hooks,convergence,rest', ranks: '2' },
  async run(bench) {
    const { links, rounds, repeats, parts, ranks } = bench.given
    const words = [links, rounds, repeats, parts, ranks, ...(bench.isSmoke ? SMALL : [])]
    await runPython(bench, 'exchange/compare.py', words)
    if (bench.isSmoke)
      for (const title of ['hooks, 2 ranks, 1gbit', '1gbit', '10gbit'])
        bench.leaveOut(title, 'it takes minutes')
  },
}
