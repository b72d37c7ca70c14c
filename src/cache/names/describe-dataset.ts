import type { Dataset } from '../../model/dataset.js'
import type { DefinitionAnswer } from './dataset-answer.js'

/** The definition of a dataset, as every answer has it. */
export function describeDataset({ name, ...definition }: Dataset): DefinitionAnswer {
  return { dataset: name, ...definition }
}
