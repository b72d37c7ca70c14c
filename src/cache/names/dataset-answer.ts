import { z } from 'zod'
import { list } from '../../answers/fields.js'
import type { Dataset } from '../../model/dataset.js'
import { FORMAT_NAMES } from '../../model/sample-formats.js'

/** Definition of a dataset: the keys of dsc.yaml, below its name, which every answer calls `dataset`. */
export const definition = z
  .strictObject({
    dataset: z.string(),
    source: z.string(),
    include: list(z.string()),
    exclude: list(z.string()),
    endpoint: z.string().optional(),
    region: z.string().optional(),
    profile: z.string().optional(),
    pathStyle: z.boolean().optional(),
    anonymous: z.boolean().optional(),
    requesterPays: z.boolean().optional(),
    format: z.enum(FORMAT_NAMES).optional(),
    dialect: z
      .strictObject({
        delimiter: z.string().optional(),
        quote: z.enum(['"', 'none']).optional(),
        header: z.boolean().optional(),
      })
      .optional(),
    columns: list(z.string()).optional(),
    readers: list(z.string()).optional(),
  })
  .meta({ id: 'dataset' })

/** The definition of a dataset, in the form that every answer uses. */
export function describeDataset({ name, ...rest }: Dataset): z.infer<typeof definition> {
  return { dataset: name, ...rest }
}
