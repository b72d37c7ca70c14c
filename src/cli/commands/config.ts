import { Command } from 'commander'
import { formatOrigin } from '../../config/config.js'
import { findDoor } from '../../config/find-door.js'
import { listSettings } from '../../config/list-settings.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc config`: every effective value and its origin. */
export function configCommand(context: CliContext) {
  return new Command('config')
    .option('--schema', 'print the JSON Schema of dsc.yaml, for editors')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc config\n  DSC_NODE=gpu-08 dsc config\n  dsc config --schema > dsc.schema.json',
    )
    .action(async (options) => {
      if (options.schema) {
        const { createJsonSchema } = await import('../../config/schema.js')
        const schema = createJsonSchema()
        context.report.result<'config --schema'>({ schema: { ...schema } }, () =>
          JSON.stringify(schema, null, 2),
        )
        return
      }
      const config = await context.config()
      const settings = listSettings(config)
      const answer: AnswerOf<'config'> = {
        file: config.filePath ?? null,
        settings: settings.map(({ key, value, origin }) => ({ key, value, setBy: origin })),
      }
      context.report.result(answer, () =>
        alignColumns(settings.map(({ key, text, origin }) => [key, text, formatOrigin(origin)])),
      )
      const door = findDoor(config)
      if (door !== undefined)
        context.report.note(`The service at ${door} answers dsc here, by its own settings.`)
      else if (config.filePath === undefined)
        context.report.note('No dsc.yaml was found; `dsc init` writes one.')
    })
}
