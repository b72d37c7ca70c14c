import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { isSea } from 'node:sea'
import Database from 'better-sqlite3'
import { Command } from 'commander'
import { DscError } from '../../failure/dsc-error.js'
import { parseWord } from '../../failure/parse-word.js'
import { findOwnCommand, findProgramFolder } from '../../platform/own-command.js'
import { parseSigningKey, type SigningKey } from '../../proof/minisign.js'
import { RECORD_SCHEMA_VERSION } from '../../records/database/schema.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'
import { alignColumns } from '../output/align-columns.js'

/** `dsc self`: facts about this program, for bug reports and for scripts that check before they go on. */
export function selfCommand(context: CliContext) {
  return new Command('self')
    .option('--schemas', 'print the JSON Schema of all --json output')
    .addCommand(selfUpdateCommand(context))
    .addHelpText(
      'after',
      '\nExamples:\n  dsc self\n  dsc self --json | jq .recordSchema\n  dsc self --schemas > dsc-output.schema.json\n  dsc --version --json               the same',
    )
    .action(async (options) => {
      if (options.schemas) {
        const { createAnswerSchema } = await import('../answers/answer-schemas.js')
        const schema = createAnswerSchema()
        context.report.result<'config --schema'>({ schema }, () => JSON.stringify(schema, undefined, 2))
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

function describeSelf(version: string): AnswerOf<'self'> {
  const database = new Database(':memory:')
  const sqlite = String(database.prepare('SELECT sqlite_version()').pluck().get())
  database.close()
  return {
    version,
    program: findOwnCommand().join(' '),
    folder: findProgramFolder(),
    nodejs: process.versions.node,
    sqlite,
    recordSchema: RECORD_SCHEMA_VERSION,
    platform: `${process.platform}-${process.arch}`,
  }
}

/** `dsc self update`: replaces the executable by one from a signed folder. */
function selfUpdateCommand(context: CliContext) {
  return new Command('update')
    .description('replace this executable by one from a signed folder')
    .argument('<from>', 'folder or https:// URL with executables, SHA256SUMS and SHA256SUMS.minisig')
    .option('--key <key>', 'public key of minisign, or its file (default: the one that this dsc came with)')
    .option('--allow-downgrade', 'go back to an older version, too')
    .option('--dry-run', 'check and try the new executable, and replace nothing')
    .option('--executable <file>', 'replace another executable than this one')
    .addHelpText(
      'after',
      '\nExamples:\n  dsc self update /mnt/nfs/dsc-releases --key dsc.pub\n  sudo dsc self update https://releases.example/dsc/',
    )
    .action(async (from, options) => {
      const { requireStandalone, updateExecutable } = await import('../self/update-executable.js')
      const executable = findExecutable(options.executable)
      await requireStandalone(executable)
      const key = findKey(options.key)
      context.report.progress(`reading ${from}`)
      const { oldVersion, newVersion, state } = await updateExecutable({
        from,
        executable,
        key,
        allowsDowngrade: options.allowDowngrade === true,
        isDryRun: options.dryRun === true,
        signal: context.signal,
      })
      context.report.progress(undefined)
      const answer: AnswerOf<'self update'> = {
        executable,
        oldVersion: oldVersion ?? null,
        newVersion: newVersion ?? null,
        state,
      }
      context.report.result(answer, () =>
        state === 'current'
          ? `${executable} is the one in ${from}`
          : `${state} ${executable}: ${oldVersion ?? 'unknown version'} → ${newVersion}`,
      )
      if (state === 'replaced') context.report.note('restart agents and feeds that still run the old one')
    })
}

/** The program that runs, or the given file, without links. */
function findExecutable(given: string | undefined): string {
  try {
    return realpathSync(given ?? (isSea() ? process.execPath : process.argv[1]!))
  } catch (error) {
    throw new DscError('USAGE', `--executable ${given}: ${(error as Error).message}`, { cause: error })
  }
}

/** The given key, or the one that `npm run package` put into this program. */
function findKey(given: string | undefined): SigningKey {
  const manifest = join(findProgramFolder(), 'package.json')
  const { updateKey } = JSON.parse(readFileSync(manifest, 'utf8')) as { readonly updateKey?: string }
  const raw = given ?? updateKey
  if (raw === undefined)
    throw new DscError('USAGE', 'this dsc came without a public key: expected --key, found none', {
      hint: 'dsc self update <from> --key <file.pub, or RW…>',
    })
  return parseWord(parseSigningKey, existsSync(raw) ? readFileSync(raw, 'utf8') : raw)
}
