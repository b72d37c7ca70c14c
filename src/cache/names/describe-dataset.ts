import type { Dataset } from '../../model/dataset.js'
import type { DefinitionAnswer } from './dataset-answer.js'

/** The definition of a dataset, in the form that every answer uses. */
export function describeDataset({ name, ...definition }: Dataset): DefinitionAnswer {
  return { dataset: name, ...definition }
}
