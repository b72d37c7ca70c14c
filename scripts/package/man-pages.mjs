// Writes dsc(1) and a page for each command, such as dsc-prepare(1), from the commands themselves: they say what --help says.

import { loadProgram } from '../../dist/cli/program.js'
import { EXIT_CODES } from '../../dist/failure/exit-codes.js'

/** The pages in roff, by their files: `dsc.1`, `dsc-prepare.1`. */
export async function formatManPages(version) {
  const program = await loadProgram({})
  const commands = program.commands.filter((command) => command.name() !== 'help')
  const pages = commands.map((command) => [`dsc-${command.name()}`, formatCommand(command)])
  return Object.fromEntries(
    [['dsc', formatProgram(program, commands)], ...pages].map(([name, lines]) => [
      `${name}.1`,
      [`.TH ${name.toUpperCase()} 1 "" "dsc ${version}" "User Commands"`, ...lines, ''].join('\n'),
    ]),
  )
}

function formatProgram(program, commands) {
  return [
    '.SH NAME',
    'dsc \\- keeps training data where the job needs it',
    '.SH SYNOPSIS',
    '.B dsc',
    '\\fIcommand\\fR [\\fIoptions\\fR] [\\fIargument\\fR ...]',
    '.SH DESCRIPTION',
    ...verbatim(program.helpInformation()),
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
    '.SH SEE ALSO',
    commands.map((command) => `.BR ${escapeRoff(`dsc-${command.name()}`)} (1)`).join(',\n'),
  ]
}

function formatCommand(command) {
  const name = command.name()
  return [
    '.SH NAME',
    `${escapeRoff(`dsc-${name}`)} \\- ${escapeRoff(command.description())}`,
    '.SH DESCRIPTION',
    ...verbatim(helpOf(command)),
    ...command.commands
      .filter((inner) => inner.name() !== 'help')
      .flatMap((inner) => [
        `.SH ${escapeRoff(`dsc ${name} ${inner.name()}`.toUpperCase())}`,
        ...verbatim(helpOf(inner)),
      ]),
    '.SH SEE ALSO',
    '.BR dsc (1)',
  ]
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
