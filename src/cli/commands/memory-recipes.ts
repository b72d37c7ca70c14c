import { type Budget, formatBytes, resolveBudget } from '../../memory/budget.js'
import { readProfile } from '../../memory/profile-file.js'
import {
  compareRecipes,
  type RecipeComparison,
  type RecipeName,
  type RecipeStep,
} from '../../memory/recipes/compare-recipes.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'

/** How to turn each recipe on. */
const RECIPES: Readonly<Record<RecipeName, { readonly title: string; readonly use: string }>> = {
  keep: { title: 'keep everything', use: 'train as it is' },
  checkpoint: {
    title: 'checkpoint() around blocks',
    use: 'checkpoint() around every block; in transformers model.gradient_checkpointing_enable()',
  },
  checkpointOffload: {
    title: '… with inputs on the host',
    use: 'checkpoint() around every block under save_on_cpu(); in accelerate activation_checkpointing_offload, in axolotl hidden_states',
  },
  saveOnCpu: { title: 'save_on_cpu()', use: 'torch.autograd.graph.save_on_cpu(pin_memory=True)' },
  torchtune: { title: 'OffloadActivations, torchtune', use: 'enable_activation_offloading: True' },
  trl: { title: 'OffloadActivations, TRL', use: 'activation_offloading=True' },
  dsc: { title: 'dsc', use: 'dsc memory plan --recompute, or dsc.memory.fit' },
}

/** `dsc memory explain --recipes`: what public recipes would do for the profiled step. */
export async function explainRecipes(
  { report }: CliContext,
  options: { readonly profile: string; readonly budget?: Budget },
): Promise<void> {
  const { profile } = await readProfile(options.profile)
  const budgetBytes = options.budget ? resolveBudget(options.budget, profile) : profile.device.bytes
  const comparison = compareRecipes(profile, { budgetBytes })
  const recipes = comparison.steps.map(({ freedBytes: _, ...step }) => step)
  const answer: AnswerOf<'memory explain --recipes'> = { budgetBytes, recipes, best: comparison.best }
  report.result(answer, () => formatRecipes(options.profile, comparison))
}

function formatRecipes(path: string, { budgetBytes, steps, best }: RecipeComparison): string {
  const idle = steps.flatMap((step) => explainIdle(step))
  return [
    `${path}: predicted, with ${formatBytes(budgetBytes)} of device memory`,
    '',
    `  ${'recipe'.padEnd(30)}${['peak', 'freed', 'step ms', 'moved'].map((title) => title.padStart(12)).join('')}`,
    ...steps.map((step) => formatStep(step, budgetBytes)),
    ...(steps.some(({ recipe }) => recipe === 'dsc') ? [] : [`  ${'dsc'.padEnd(30)}no plan fits`]),
    ...(idle.length > 0 ? ['', ...idle] : []),
    '',
    best ? `best: ${RECIPES[best].use}` : `best: none fits; the lowest peak is that of ${lowest(steps)}`,
    "accelerate's cpu_offload() is for inference: a model under it gets no gradients",
  ].join('\n')
}

function formatStep({ recipe, peakBytes, freedBytes, stepMs, movedBytes }: RecipeStep, budgetBytes: number) {
  const freed = freedBytes < 0 ? `-${formatBytes(-freedBytes)}` : formatBytes(freedBytes)
  const columns = [formatBytes(peakBytes), freed, stepMs.toFixed(1), formatBytes(movedBytes)]
  const row = columns.map((text) => text.padStart(12)).join('')
  return `  ${RECIPES[recipe].title.padEnd(30)}${row}${peakBytes > budgetBytes ? '  over the budget' : ''}`
}

/** Recipes that free nothing: some move nothing, some move what the peak does not have. */
function explainIdle({ recipe, movedBytes, freedBytes, why }: RecipeStep): string[] {
  if (!why) return []
  const done = movedBytes === 0 ? '0 bytes moved' : `${formatBytes(movedBytes)} moved`
  const effect = freedBytes < 0 ? 'the peak rises' : '0 bytes freed'
  return [`${RECIPES[recipe].title}: ${done}, ${effect}: ${why}`]
}

function lowest(steps: readonly RecipeStep[]): string {
  const least = steps.reduce((one, other) => (other.peakBytes < one.peakBytes ? other : one))
  return `${RECIPES[least.recipe].title}, ${formatBytes(least.peakBytes)}`
}
