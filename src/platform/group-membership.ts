import { tryReadFile } from './try-read-file.js'

/** How long to wait for the system's directory (LDAP, SSSD) before continuing without an answer, ms. */
const ANSWER_TIMEOUT_MS = 5000

/**
 * Whether this process is in the group of this name; with `user`, whether that user is. Asks /etc/group, then the
 * system's directory. An unknown name has no members.
 */
export function isGroupMember(group: string, user?: string): boolean {
  const entry = findEntry(readGroups(), group) ?? findEntry(ask('getent', 'group', group), group)
  if (entry === undefined) return false
  if (user !== undefined) return ask('id', '-Gn', user).trim().split(/\s+/).includes(group)
  return [process.getegid?.(), ...(process.getgroups?.() ?? [])].includes(entry.id)
}

/** The system's list of groups; empty on a system without one. */
export function readGroups(): string {
  return tryReadFile('/etc/group') ?? ''
}

function findEntry(text: string, group: string): { readonly id: number } | undefined {
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':')
    if (name === group && id !== undefined && /^[0-9]+$/.test(id)) return { id: Number(id) }
  }
  return undefined
}

/** Empty if the command is missing, finds nothing, or takes too long. */
function ask(command: string, ...words: readonly string[]): string {
  try {
    // Loaded on demand: a warm `dsc prepare` is in a hurry.
    const { execFileSync } = process.getBuiltinModule('node:child_process')
    return execFileSync(command, [...words], {
      encoding: 'utf8',
      timeout: ANSWER_TIMEOUT_MS,
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    return ''
  }
}
