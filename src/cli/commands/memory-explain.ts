import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes, parseBudget } from '../../memory/budget.js'
import { traceBudgets } from '../../memory/explain/budget-curve.js'
import { drawCurve } from '../../memory/explain/draw-curve.js'
import { drawPlan, explainPlan } from '../../memory/explain/explain-plan.js'
import { sumPlan } from '../../memory/explain/sum-plan.js'
import type { BudgetPoint, Explanation, PlanSums } from '../../memory/memory-answer.js'
import { writeNamedFile } from '../../memory/named-file.js'
import type { MemoryPlan } from '../../memory/plan/plan-format.js'
import { readPlan } from '../../memory/plan-file.js'
import { readProfile } from '../../memory/profile-file.js'
import type { CliContext } from '../context.js'
import { requireOwnFile } from '../output/require-own-file.js'
import { explainRecipes } from './memory-recipes.js'

/** `dsc memory explain`: a plan's totals by module, and for every tensor why it moves or stays. */
export function memoryExplainCommand(context: CliContext) {
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
    .action(async (path, options) => {
      if (options.recipes) return explainRecipes(context, options)
      if (!path) {
        throw new DscError('USAGE', 'nothing to explain: no plan and no --recipes', {
          hint: `dsc memory explain --recipes --profile ${options.profile}`,
        })
      }
      await requireOwnFile(options.curve, '<svg')
      const { profile, hash } = await readProfile(options.profile)
      const plan = await readPlan(path, hash)
      const tensors = explainPlan(profile, plan)
      const sums = sumPlan(profile, plan)
      const budgets = options.curve ? traceBudgets(profile, plan) : []
      if (options.svg) await writeNamedFile(options.svg, 'picture', drawPlan(profile, plan))
      if (options.curve) await writeNamedFile(options.curve, 'picture', drawCurve(budgets, plan.budgetBytes))
      report.result<'memory explain'>({ ...sums, predicted: plan.predicted, budgets, tensors }, () =>
        [
          ...formatTotals(sums, plan),
          ...formatBudgets(budgets, plan),
          '',
          ...formatTensors(tensors, { smallestBytes: options.all ? 0 : plan.options.smallestBytes }),
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
  if (!budgets.some((point) => point.budgetBytes === budgetBytes)) return []
  const say = ({ stepMs }: BudgetPoint) => (stepMs === undefined ? 'no plan fits' : `a step of ${stepMs} ms`)
  return ['', ...budgets.map((point) => `  with ${formatBytes(point.budgetBytes)}: ${say(point)}`)]
}

function formatTensors(rows: readonly Explanation[], { smallestBytes }: { smallestBytes: number }): string[] {
  const shown = rows.filter(({ sizeBytes }) => sizeBytes >= smallestBytes)
  const hidden = rows.length - shown.length
  return [
    ...shown.map(
      ({ decision, sizeBytes, kind, name, producer, storage, why }) =>
        `${decision.padEnd(6)} ${formatBytes(sizeBytes).padStart(11)}  ${kind.padEnd(12)} #${storage} of ${name ?? producer}: ${why}`,
    ),
    ...(hidden > 0 ? [`${hidden} small tensors stay; --all shows them`] : []),
  ]
}
