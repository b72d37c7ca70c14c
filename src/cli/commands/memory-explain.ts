import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { type Budget, formatBytes, parseBudget } from '../../memory/budget.js'
import { type BudgetPoint, traceBudgets } from '../../memory/explain/budget-curve.js'
import { drawCurve } from '../../memory/explain/draw-curve.js'
import { drawPlan, type Explanation, explainPlan } from '../../memory/explain/explain-plan.js'
import { type PlanSums, sumPlan } from '../../memory/explain/sum-plan.js'
import { writeNamedFile } from '../../memory/named-file.js'
import type { MemoryPlan } from '../../memory/plan/plan-format.js'
import { readPlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import type { MemoryExplainAnswer } from '../answers/memory-answers.js'
import type { CliContext } from '../context.js'
import { requireOwnFile } from '../output/require-own-file.js'
import { explainRecipes } from './memory-recipes.js'

interface ExplainOptions {
  readonly profile: string
  readonly all: boolean
  readonly recipes: boolean
  readonly budget?: Budget
  readonly svg?: string
  readonly curve?: string
}

/** `dsc memory explain`: a plan's totals by module, and for every tensor why it moves or stays. */
export function memoryExplainCommand(context: CliContext): Command {
  const { report } = context
  return new Command('explain')
    .description('show for every tensor why it moves or stays')
    .argument('[plan]', 'a plan by `dsc memory plan`; none with --recipes')
    .requiredOption('--profile <file>', 'the profile of the plan')
    .option('--all', 'list small tensors, too', false)
    .option('--recipes', 'predict peak and step of public recipes instead', false)
    .option(
      '--budget <size>',
      'with --recipes: memory to fit (default: that of the device)',
      (text: string) => parseBudget(text),
    )
    .option('--svg <file>', 'draw memory over the step')
    .option('--curve <file>', 'draw the predicted step under other budgets')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc memory explain gpt.plan.json --profile gpt.profile.json\n  dsc memory explain --recipes --profile gpt.profile.json --budget 24GiB\n  dsc memory explain gpt.plan.json --profile gpt.profile.json --curve budgets.svg',
    )
    .action(async (path: string | undefined, options: ExplainOptions) => {
      if (options.recipes) return explainRecipes(context, options)
      if (!path) {
        throw new DscError('USAGE', 'nothing to explain: no plan and no --recipes', {
          hint: `dsc memory explain --recipes --profile ${options.profile}`,
        })
      }
      await requireOwnFile(options.curve, '<svg')
      const { profile, hash } = await readProfile(options.profile)
      const plan = await readPlan(path, hash)
      const rows = explainPlan(profile, plan)
      const sums = sumPlan(profile, plan)
      const budgets = options.curve ? traceBudgets(profile, plan) : []
      if (options.svg) await writeNamedFile(options.svg, 'picture', drawPlan(profile, plan))
      if (options.curve) await writeNamedFile(options.curve, 'picture', drawCurve(budgets, plan.budgetBytes))
      const tensors = rows.map(({ bytes, ...row }) => ({ ...row, sizeBytes: bytes }))
      const answer: MemoryExplainAnswer = { dsc: 1, ...sums, predicted: plan.predicted, budgets, tensors }
      report.result(answer, () =>
        [
          ...formatTotals(sums, plan),
          ...formatBudgets(budgets, plan),
          '',
          ...formatTensors(rows, { smallestBytes: options.all ? 0 : plan.options.smallestBytes }),
        ].join('\n'),
      )
    })
}

/** Maximum number of listed lines of code, largest first. */
const MOST_LINES = 20

function formatTotals(
  { totals, modules, lines }: PlanSums,
  { predicted, budgetBytes }: MemoryPlan,
): string[] {
  const { keptBytes, recomputedBytes, movedBytes } = totals
  const listed = [...modules, ...lines.slice(0, MOST_LINES)]
  const width = Math.max(32, ...listed.map(({ name }) => name.length))
  const row = (name: string, columns: readonly string[]) =>
    `  ${name.padEnd(width)}${columns.map((text) => text.padStart(12)).join('')}`
  const rows = (group: PlanSums['modules']) =>
    group.map((one) => row(one.name, [one.keptBytes, one.recomputedBytes, one.movedBytes].map(formatBytes)))
  const titles = ['stays', 'again', 'moves']
  const byLine =
    lines.length === 0 ? [] : ['', row('line of code', titles), ...rows(lines.slice(0, MOST_LINES))]
  const hidden = lines.length > MOST_LINES ? [`  ${lines.length - MOST_LINES} smaller lines: --json`] : []
  return [
    `saved for backward: ${formatBytes(keptBytes)} stay, ${formatBytes(recomputedBytes)} are recomputed, ${formatBytes(movedBytes)} move`,
    `predicted: peak ${formatBytes(predicted.peakBytes)} of ${formatBytes(budgetBytes)} at ${predicted.peakAt} (without a plan ${formatBytes(predicted.unplannedPeakBytes)}); step ${predicted.stepMs} ms, of which ${predicted.recomputeMs} ms again and ${predicted.stallMs} ms stall`,
    '',
    row('module', titles),
    ...rows(modules),
    ...byLine,
    ...hidden,
  ]
}

function formatBudgets(budgets: readonly BudgetPoint[], { budgetBytes }: MemoryPlan): string[] {
  const at = budgets.findIndex((point) => point.budgetBytes === budgetBytes)
  if (at < 0) return []
  const say = (point: BudgetPoint | undefined) =>
    point
      ? [
          `  with ${formatBytes(point.budgetBytes)}: ${point.stepMs === undefined ? 'no plan fits' : `a step of ${point.stepMs} ms`}`,
        ]
      : []
  return ['', ...budgets.flatMap((point) => say(point))]
}

function formatTensors(rows: readonly Explanation[], { smallestBytes }: { smallestBytes: number }): string[] {
  const shown = rows.filter(({ bytes }) => bytes >= smallestBytes)
  const hidden = rows.length - shown.length
  return [
    ...shown.map(
      ({ decision, bytes, kind, name, producer, storage, why }) =>
        `${decision.padEnd(6)} ${formatBytes(bytes).padStart(11)}  ${kind.padEnd(12)} #${storage} of ${name ?? producer}: ${why}`,
    ),
    ...(hidden > 0 ? [`${hidden} small tensors stay; --all shows them`] : []),
  ]
}
