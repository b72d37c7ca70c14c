import type { StatusSnapshot } from '../../../cache/status/compose-status.js'
import type { ListRows } from '../lists/list-rows.js'
import { THEMES } from '../text/theme.js'
import { LIST_COMMANDS, SCREEN_COMMANDS } from './run-command.js'

/** A command that begins as typed. */
interface Candidate {
  readonly text: string
  readonly does: string
}

/** The names that commands take. */
interface Known {
  readonly snapshot: StatusSnapshot | undefined
  readonly rows: ListRows
}

/** The commands that begin as typed; after the name of one, the arguments that do. */
export function completeCommand(typed: string, known: Known): readonly Candidate[] {
  const space = typed.indexOf(' ')
  if (space === -1) {
    const commands = [...LIST_COMMANDS, ...SCREEN_COMMANDS].filter(({ name }) => name.startsWith(typed))
    return commands.map(({ name, takes, does }) => ({ text: name, does: takes ? `${takes}: ${does}` : does }))
  }
  const [name, begun] = [typed.slice(0, space), typed.slice(space).trimStart().toLowerCase()]
  const found = listArguments(name, known).filter((argument) => argument.toLowerCase().startsWith(begun))
  return [...new Set(found)].sort().map((argument) => ({ text: `${name} ${argument}`, does: '' }))
}

function listArguments(command: string, { snapshot, rows }: Known): readonly string[] {
  switch (command) {
    case 'node':
      return snapshot?.nodes.map(({ node }) => node) ?? []
    case 'dataset':
    case 'prepare':
      return snapshot?.copies.map(({ dataset }) => dataset) ?? []
    case 'sort':
      return rows.sortable.map((title) => title.toLowerCase())
    case 'theme':
      return THEMES
    default:
      return []
  }
}

/** The typed text, completed by what its first candidates have in common, as a shell does. */
export function takeCandidate(typed: string, known: Known): string {
  const [first, ...others] = completeCommand(typed, known)
  if (!first) return typed
  if (others.length === 0) return first.text
  let common = first.text
  for (const { text } of others) while (!text.startsWith(common)) common = common.slice(0, -1)
  return common.length > typed.length ? common : first.text
}
