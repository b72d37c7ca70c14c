import { Command } from 'commander'
import { formatBytes, resolveBudget } from '../../memory/budget.js'
import type { Way } from '../../memory/memory-answer.js'
import { readProfile } from '../../memory/profile-file.js'
import { chooseWays, planWays, type Ways } from '../../memory/ways/choose-ways.js'
import { formatCount } from '../../model/format-count.js'
import type { CliContext } from '../context.js'
import { explainInfeasible } from './explain-infeasible.js'
import { budgetOption, smallestOption } from './memory-arguments.js'

/** `dsc memory ways`: compares keeping, recomputing and moving under one budget, block by block. */
export function memoryWaysCommand({ report }: CliContext) {
  return new Command('ways')
    .description('compare keeping, recomputing and moving under a budget')
    .argument('<profile>', 'a profile by `dsc memory profile`')
    .addOption(budgetOption())
    .addOption(smallestOption())
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory ways gpt.profile.json --budget 24GiB\n  dsc memory ways gpt.profile.json --budget 50% --json',
    )
    .action(async (path, options) => {
      const { profile } = await readProfile(path)
      const budgetBytes = resolveBudget(options.budget, profile)
      const request = { budgetBytes, smallestBytes: options.smallest }
      const ways = chooseWays(profile, request)
      const blocks = ways.blocks.map(({ name }) => name)
      report.result<'memory ways'>({ ...ways, blocks }, () => formatWays(path, ways))
      if (ways.best) return
      const outcome = planWays(profile, request)
      if (outcome.kind === 'infeasible')
        throw explainInfeasible({ what: `mixture for ${path}`, ...request, outcome })
    })
}

function formatWays(path: string, ways: Ways): string {
  const { keepAll, recomputeAll, recomputeAllMoveInputs, moveOnly, best, budgetBytes, blocks } = ways
  const rows: [string, Way | undefined][] = [
    ['keep everything', keepAll],
    ['recompute every block', recomputeAll],
    ['and move what they are given', recomputeAllMoveInputs],
    ['move only (dsc memory plan)', moveOnly],
    ['chosen by block', best],
  ]
  return [
    `${path}: ${formatBytes(budgetBytes)} of device memory, ${blocks.length === 0 ? 'no part that could be recomputed' : formatCount(blocks.length, 'block')}`,
    '',
    `  ${'way'.padEnd(30)}${'peak'.padStart(12)}${'step ms'.padStart(10)}${'again'.padStart(8)}${'stall'.padStart(8)}`,
    ...rows.map(([name, way]) => `  ${name.padEnd(30)}${formatWay(way, budgetBytes)}`),
    ...(best ? ['', ...explainBest(ways, best)] : []),
  ].join('\n')
}

function formatWay(way: Way | undefined, budgetBytes: number): string {
  if (!way) return 'does not fit'
  const { peakBytes, stepMs, recomputeMs, stallMs } = way
  const times = `${stepMs.toFixed(1).padStart(10)}${recomputeMs.toFixed(1).padStart(8)}${stallMs.toFixed(1).padStart(8)}`
  return `${formatBytes(peakBytes).padStart(12)}${times}${peakBytes > budgetBytes ? '  over the budget' : ''}`
}

/** A fixed recipe is as good if its step takes at most this many times as long: predictions are no more exact. */
const AS_GOOD = 1.02

function explainBest(
  { blocks, keepAll, recomputeAll, recomputeAllMoveInputs, budgetBytes }: Ways,
  { recomputed, moves, stepMs }: Way,
): string[] {
  if (keepAll.peakBytes <= budgetBytes) return ['everything fits: nothing needs to move or to run again']
  const again =
    recomputed.length === 0
      ? 'recompute nothing'
      : recomputed.length === blocks.length
        ? 'recompute every block'
        : `recompute ${recomputed.join(', ')}`
  const rest =
    moves === 0 ? 'nothing needs to move' : `then ${formatCount(moves, 'storage')} of the rest move`
  const next = recomputed.length === 0 ? 'dsc memory plan' : 'dsc memory plan --recompute'
  const isAsGood = (way: Way) => way.peakBytes <= budgetBytes && way.stepMs <= AS_GOOD * stepMs
  const recipe = isAsGood(recomputeAll)
    ? [
        'as good here: checkpoint() around every block, in transformers model.gradient_checkpointing_enable(); it needs nothing of dsc',
      ]
    : isAsGood(recomputeAllMoveInputs)
      ? [
          "as good here: checkpoint() around every block with its inputs on the host, in transformers gradient_checkpointing_kwargs={'offload': True}; it needs nothing of dsc",
        ]
      : []
  return [`${again}; ${rest}`, ...recipe, `next: ${next}`]
}
