import { Command, Option } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes, resolveBudget } from '../../memory/budget.js'
import { drawPlan } from '../../memory/explain/explain-plan.js'
import { writeNamedFile } from '../../memory/named-file.js'
import type { ExtraKind, MemoryPlan } from '../../memory/plan/plan-format.js'
import { planMemory } from '../../memory/plan/plan-memory.js'
import { formatPlanFile, writePlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import { readRunReport } from '../../memory/run-report.js'
import type { MemoryProfile } from '../../memory/step/profile.js'
import { planWays } from '../../memory/ways/choose-ways.js'
import { formatCount } from '../../model/format-count.js'
import { writeAll } from '../../platform/standard-streams.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { OptionsOf } from '../arguments/options-of.js'
import type { CliContext } from '../context.js'
import { requireOwnFile } from '../output/require-own-file.js'
import { explainInfeasible } from './explain-infeasible.js'
import { budgetOption, smallestOption } from './memory-arguments.js'

const MOVE_WORDS: Readonly<Record<string, ExtraKind>> = {
  params: 'param',
  grads: 'param_grad',
  optimizer: 'opt_state',
}

const declare = () =>
  new Command('plan')
    .description('plan a step under a budget; exit 6 if no plan fits')
    .argument('<profile>', 'a profile by `dsc memory profile`')
    .addOption(budgetOption())
    .option('--out <file>', 'file for the plan; - is stdout', 'memory.plan.json')
    .option('--move <kinds>', 'also move params, grads, optimizer to the host', parseMove)
    .addOption(smallestOption())
    .option('--recompute', 'also recompute blocks; offload() then needs model=', false)
    .option('--reuse', 'write gradients into activations no longer needed', false)
    .addOption(
      new Option('--reload <space>', 'bring tensors back to one arena, or to slots of their own')
        .choices(['arena', 'slots'])
        .default('arena'),
    )
    .option('--feedback <run>', 'report of a run: late copies start earlier')
    .option('--svg <file>', 'draw memory over the step')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory plan gpt.profile.json --budget 24GiB --out gpt.plan.json --svg step.svg\n  dsc memory plan gpt.profile.json --budget 40% --move params,grads --out gpt.plan.json',
    )

type PlanOptions = OptionsOf<typeof declare>

/** `dsc memory plan`: decides what moves and when, and writes the plan. */
export function memoryPlanCommand(context: CliContext) {
  return declare().action((path, options) => planProfile(context, path, options))
}

async function planProfile(context: CliContext, path: string, options: PlanOptions): Promise<void> {
  if (options.out !== '-') await requireOwnFile(options.out, 'dsc.mem.plan')
  await requireOwnFile(options.svg, '<svg')
  refuseTogether(options)
  const { profile, hash } = await readProfile(path)
  const feedback = options.feedback ? await readRunReport(options.feedback) : undefined
  const request = {
    profileHash: hash,
    extras: options.move,
    smallestBytes: options.smallest,
    canReuse: options.reuse,
    isSlotted: options.reload === 'slots',
    latenessUs: feedback && new Map(feedback.lateness.map(({ storage, lateUs }) => [storage, lateUs])),
  }
  const budgetBytes = resolveBudget(options.budget, profile)
  const plan = options.recompute ? planWays : planMemory
  const outcome = plan(profile, { ...request, budgetBytes })
  if (outcome.kind === 'infeasible') {
    throw explainInfeasible({
      what: `plan of ${path}`,
      budgetBytes,
      smallestBytes: options.smallest,
      outcome,
    })
  }
  await handOver(context, { plan: outcome.plan, profile, options })
}

/** Writes the plan and its picture, and reports its totals. */
async function handOver(
  { report }: CliContext,
  { plan, profile, options }: { plan: MemoryPlan; profile: MemoryProfile; options: PlanOptions },
): Promise<void> {
  if (options.out === '-') {
    writeAll('stdout', formatPlanFile(plan))
    return
  }
  await writePlan(options.out, plan)
  if (options.svg) await writeNamedFile(options.svg, 'picture', drawPlan(profile, plan))
  const { budgetBytes, moves, recompute, predicted } = plan
  const { host, reload } = plan.arenas
  const answer: AnswerOf<'memory plan'> = {
    plan: options.out,
    budgetBytes,
    moves: moves.length,
    recompute: recompute.map(({ name }) => name),
    predicted,
    arenas: {
      host: { sizeBytes: host.bytes, liveBytes: host.liveBytes },
      reload: { mode: reload.mode, sizeBytes: reload.bytes, liveBytes: reload.liveBytes },
    },
  }
  report.result(answer, () => formatSummary(plan, options.out))
}

function refuseTogether({ recompute, reuse, move }: PlanOptions): void {
  if (!recompute || (!reuse && !move)) return
  throw new DscError(
    'USAGE',
    `--recompute and ${reuse ? '--reuse' : '--move'} cannot be planned together yet`,
    { hint: 'choose one of them' },
  )
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

function formatSummary(plan: MemoryPlan, path: string): string {
  const { predicted, moves, arenas, reuse } = plan
  const words = `${formatCount(reuse.length, 'feature gradient')} written into dead maps`
  const again = plan.recompute.map(({ name }) => name).join(', ')
  const againLines = again ? [`  again  ${predicted.recomputeMs} ms of forward: ${again}`] : []
  const reuseLines = plan.options.reuse ? [`  reuse  ${words}`] : []
  if (moves.length === 0 && !again) {
    const peak = `The step peaks at ${formatBytes(predicted.peakBytes)}, the budget is ${formatBytes(plan.budgetBytes)}.`
    return [`${path}: nothing needs to move, 0 bytes. ${peak}`, ...reuseLines].join('\n')
  }
  const slowdown = ((100 * predicted.stallMs) / predicted.baseMs).toFixed(1)
  const reload = arenas.reload.mode === 'arena' ? 'one arena' : 'a slot each'
  return [
    `${path}: ${moves.length} storages move, ${formatBytes(predicted.movedBytes)} per step both ways together`,
    `  peak   ${formatBytes(predicted.peakBytes)} at ${predicted.peakAt} (without a plan ${formatBytes(predicted.unplannedPeakBytes)}, budget ${formatBytes(plan.budgetBytes)})`,
    `  step   ${predicted.stepMs} ms, of which ${predicted.stallMs} ms stall (${slowdown} %; no plan can stall less than ${predicted.leastStallMs} ms)`,
    ...againLines,
    `  host   ${formatBytes(predicted.hostBytes)} in one arena`,
    `  reload ${formatBytes(arenas.reload.bytes)} in ${reload}`,
    ...reuseLines,
  ].join('\n')
}
