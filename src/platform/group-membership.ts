import { readFileSync } from 'node:fs'

/** An answer of the system's directory (LDAP, SSSD) that takes longer is none, ms. */
const ANSWER_TIMEOUT_MS = 5000

/**
 * Whether this process is in the group of this name; with `user`, whether that user is. Asks /etc/group, then the
 * system's directory. A name that nobody knows has no members.
 */
export function isGroupMember(group: string, user?: string): boolean {
  const entry = findEntry(readGroups(), group) ?? findEntry(ask('getent', 'group', group), group)
  if (entry === undefined) return false
  if (user !== undefined) return ask('id', '-Gn', user).trim().split(/\s+/).includes(group)
  return [process.getegid?.(), ...(process.getgroups?.() ?? [])].includes(entry.id)
}

function readGroups(): string {
  try {
    return readFileSync('/etc/group', 'utf8')
  } catch {
    return '' // a container may have none
  }
}

function findEntry(text: string, group: string): { readonly id: number } | undefined {
  for (const line of text.split('\n')) {
    const [name, , id] = line.split(':')
    if (name === group && id !== undefined && /^[0-9]+$/.test(id)) return { id: Number(id) }
  }
  return undefined
}

/** Nothing where the command is missing, knows no answer, or takes too long. */
function ask(command: string, ...words: readonly string[]): string {
  try {
    // Loaded when asked for: a warm `dsc prepare` is in a hurry.
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
