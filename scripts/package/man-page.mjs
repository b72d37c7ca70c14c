// Writes dsc(1) from the commands themselves, so that it says what their --help says.

import { loadProgram } from '../../dist/cli/program.js'
import { EXIT_CODES } from '../../dist/failure/exit-codes.js'

/** The page in roff. */
export async function formatManPage(version) {
  const program = await loadProgram({})
  const commands = [...walk(program, 'dsc')].slice(1)
  return [
    `.TH DSC 1 "" "dsc ${version}" "User Commands"`,
    '.SH NAME',
    'dsc \\- keeps training data where the job needs it',
    '.SH SYNOPSIS',
    '.B dsc',
    '[\\fIoptions\\fR] \\fIcommand\\fR [\\fIargument\\fR ...]',
    '.SH DESCRIPTION',
    ...verbatim(program.helpInformation()),
    '.SH COMMANDS',
    ...commands.flatMap(({ name, command }) => [`.SS ${escapeRoff(name)}`, ...verbatim(helpOf(command))]),
    '.SH EXIT STATUS',
    ...Object.values(EXIT_CODES).flatMap(({ exitCode, meaning }) => [
      '.TP',
      `${exitCode}`,
      escapeRoff(meaning),
    ]),
    '.SH FILES',
    '.TP',
    '/etc/dsc/dsc.yaml, ~/.config/dsc/dsc.yaml',
    'the configuration; $DSC_CONFIG or \\-\\-config names another one',
    '',
  ].join('\n')
}

function* walk(command, name) {
  yield { command, name }
  for (const inner of command.commands)
    if (inner.name() !== 'help') yield* walk(inner, `${name} ${inner.name()}`)
}

/** The help with what stands after it: the examples. */
function helpOf(command) {
  const written = []
  command.configureOutput({ writeOut: (text) => written.push(text) })
  command.outputHelp()
  return written.join('')
}

function verbatim(text) {
  return ['.nf', ...text.trimEnd().split('\n').map(escapeRoff), '.fi']
}

function escapeRoff(text) {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/, '\\&$1')
}
