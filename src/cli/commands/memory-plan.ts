import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { type Budget, formatBytes, parseBudget, resolveBudget } from '../../memory/budget.js'
import { writeNamedFile } from '../../memory/named-file.js'
import { type ExtraKind, SMALLEST_MOVE_BYTES } from '../../memory/plan/candidates.js'
import { drawPlan } from '../../memory/plan/explain.js'
import type { MemoryPlan } from '../../memory/plan/memory-plan.js'
import { planMemory } from '../../memory/plan/plan-memory.js'
import { formatPlanFile, writePlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import { readRunReport } from '../../memory/run-report.js'
import type { CliContext } from '../context.js'

const MOVE_WORDS: Readonly<Record<string, ExtraKind>> = {
  params: 'param',
  grads: 'param_grad',
  optimizer: 'opt_state',
}

/** `dsc memory plan`: decides what moves and when, and writes the plan. */
export function memoryPlanCommand({ report }: CliContext): Command {
  return new Command('plan')
    .description('plan a training step under a budget of device bytes; exit 3 when no plan fits')
    .argument('<profile>', 'what dsc.memory.profile wrote')
    .requiredOption(
      '--budget <size>',
      'device bytes (24GiB), or a share of the unplanned peak (50%)',
      (text: string) => parseBudget(text),
    )
    .option('--out <file>', 'where the plan goes; - for stdout', 'memory.plan.json')
    .option(
      '--move <kinds>',
      'also move params, grads, optimizer (comma separated); they get a home on the host, where the optimizer runs',
      parseMove,
    )
    .option('--smallest <size>', 'leave smaller tensors where they are', parseSmallest, SMALLEST_MOVE_BYTES)
    .option(
      '--reuse',
      'count on feature gradients written into dead maps (the PyTorch executor refuses such plans)',
      false,
    )
    .option(
      '--reload <space>',
      'where maps come back to: one arena, or slots of their own',
      parseReload,
      false,
    )
    .option('--feedback <run>', 'a run report: copies that came late start earlier')
    .option('--svg <file>', 'draw memory over the step, planned and unplanned')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory plan gpt.profile.json --budget 24GiB --out gpt.plan.json --svg step.svg\n  dsc memory plan gpt.profile.json --budget 40% --move params,grads --out gpt.plan.json',
    )
    .action(async (path: string, options: PlanOptions) => {
      const { profile, hash } = await readProfile(path)
      const feedback = options.feedback ? await readRunReport(options.feedback) : undefined
      const request = {
        profileHash: hash,
        extras: options.move,
        smallestBytes: options.smallest,
        canReuse: options.reuse,
        isSlotted: options.reload,
        latenessUs: feedback && new Map(feedback.lateness.map(({ storage, lateUs }) => [storage, lateUs])),
      }
      const budgetBytes = resolveBudget(options.budget, () => {
        const roomy = planMemory(profile, { ...request, budgetBytes: Number.MAX_SAFE_INTEGER })
        return roomy.kind === 'planned' ? roomy.plan.predicted.unplannedPeakBytes : 0
      })
      const outcome = planMemory(profile, { ...request, budgetBytes })
      if (outcome.kind === 'infeasible') {
        throw new DscError(
          'PLAN_INFEASIBLE',
          `no plan of ${path} fits ${budgetBytes} bytes (${formatBytes(budgetBytes)}): ${outcome.at} needs ${outcome.leastBytes} (${formatBytes(outcome.leastBytes)})`,
          { hint: `--budget ${outcome.leastBytes}, or a smaller batch` },
        )
      }
      const { plan } = outcome
      if (options.out === '-') {
        process.stdout.write(formatPlanFile(plan))
        return
      }
      await writePlan(options.out, plan)
      if (options.svg) await writeNamedFile(options.svg, 'picture', drawPlan(profile, plan))
      const { predicted, moves } = plan
      report.result(
        { plan: options.out, budgetBytes, moves: moves.length, predicted, arenas: plan.arenas },
        () => formatSummary(plan, options.out),
      )
    })
}

interface PlanOptions {
  readonly budget: Budget
  readonly out: string
  readonly move?: readonly ExtraKind[]
  readonly smallest: number
  readonly reuse: boolean
  readonly reload: boolean
  readonly feedback?: string
  readonly svg?: string
}

function parseSmallest(text: string): number {
  const size = parseBudget(text, '--smallest')
  if (size.kind === 'bytes') return size.bytes
  throw new DscError('USAGE', `--smallest ${text} is not a size`, { hint: '--smallest 1MiB' })
}

function parseMove(text: string): ExtraKind[] {
  return text.split(',').map((word) => {
    const kind = MOVE_WORDS[word.trim()]
    if (kind) return kind
    throw new DscError('USAGE', `--move ${word} is not one of ${Object.keys(MOVE_WORDS).join(', ')}`, {
      hint: '--move params,grads',
    })
  })
}

function parseReload(text: string): boolean {
  if (text === 'arena' || text === 'slots') return text === 'slots'
  throw new DscError('USAGE', `--reload ${text} is neither arena nor slots`, {
    hint: '--reload slots',
  })
}

function formatSummary(plan: MemoryPlan, path: string): string {
  const { predicted, moves, arenas, reuse } = plan
  if (moves.length === 0) {
    return `${path}: nothing needs to move, 0 bytes. The step peaks at ${formatBytes(predicted.unplannedPeakBytes)}, the budget is ${formatBytes(plan.budgetBytes)}.`
  }
  const slowdown = ((100 * predicted.stallMs) / predicted.baseMs).toFixed(1)
  const reload = arenas.reload.mode === 'arena' ? 'one arena' : 'a slot each'
  return [
    `${path}: ${moves.length} storages move, ${formatBytes(predicted.movedBytes)} per step both ways together`,
    `  peak   ${formatBytes(predicted.peakBytes)} at ${predicted.peakAt} (without a plan ${formatBytes(predicted.unplannedPeakBytes)}, budget ${formatBytes(plan.budgetBytes)})`,
    `  step   ${predicted.stepMs} ms, of which ${predicted.stallMs} ms stall (${slowdown} %; no plan can stall less than ${predicted.leastStallMs} ms)`,
    `  host   ${formatBytes(predicted.hostBytes)} in one arena`,
    `  reload ${formatBytes(arenas.reload.bytes)} in ${reload}`,
    ...(reuse.length > 0 ? [`  reuse  ${reuse.length} feature gradients are written into dead maps`] : []),
  ].join('\n')
}
