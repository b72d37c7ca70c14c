import Database from 'better-sqlite3'
import { Command } from 'commander'
import { findOwnCommand, findProgramFolder } from '../../platform/own-command.js'
import { RECORD_SCHEMA_VERSION } from '../../records/database/schema.js'
import type { SchemaAnswer, SelfAnswer } from '../answers/cache-answers.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'
import { selfUpdateCommand } from './self-update.js'

/** `dsc self`: facts about this program, for bug reports and for scripts that check before they go on. */
export function selfCommand(context: CliContext): Command {
  return new Command('self')
    .description('show version and install location, or update')
    .option('--schemas', 'print the JSON Schema of all --json output')
    .addCommand(selfUpdateCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc self\n  dsc self --json | jq .recordSchema\n  dsc self --schemas > dsc-output.schema.json\n  dsc --version --json               the same',
    )
    .action(async (options: { schemas?: true }) => {
      if (options.schemas) {
        const { createAnswerSchema } = await import('../answers/answer-schemas.js')
        const schema = createAnswerSchema()
        const answer: SchemaAnswer = { dsc: 1, schema }
        context.report.result(answer, () => JSON.stringify(schema, undefined, 2))
        return
      }
      const self = describeSelf(context.version)
      context.report.result(self, () =>
        alignColumns([
          ['dsc', self.version],
          ['program', self.program],
          ['runs from', self.folder],
          ['node', self.nodejs],
          ['sqlite', self.sqlite],
          ['record schema', String(self.recordSchema)],
          ['platform', self.platform],
        ]),
      )
    })
}

function describeSelf(version: string): SelfAnswer {
  const database = new Database(':memory:')
  const sqlite = String(database.prepare('SELECT sqlite_version()').pluck().get())
  database.close()
  return {
    dsc: 1,
    version,
    program: findOwnCommand().join(' '),
    folder: findProgramFolder(),
    nodejs: process.versions.node,
    sqlite,
    recordSchema: RECORD_SCHEMA_VERSION,
    platform: `${process.platform}-${process.arch}`,
  }
}
