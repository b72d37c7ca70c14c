import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { FreshAnswers } from './fresh-answers.js'

/** How long to wait for the system's directory (LDAP, SSSD) before continuing without an answer, ms. */
const ANSWER_TIMEOUT_MS = 5000
/** How long an answer counts: a new member of a group need not restart a service. */
const KEPT_MS = 60_000
/** Maximum number of kept answers: anybody may have thousands of uids in a user namespace. */
const MAX_KEPT = 1000

/** The numbers of a user. */
export interface Account {
  readonly uid: number
  readonly gid: number
}

/** Names of users and ids of groups, from the files in /etc, then from the system's directory, for a service. */
export class UserDirectory {
  readonly #kept = new FreshAnswers<string | undefined>({ freshMs: KEPT_MS, most: MAX_KEPT })

  /** `ada`, or `uid-1234` for a user without an entry, as in many containers. */
  async nameOf(uid: number): Promise<string> {
    return (await this.#find({ file: 'passwd', key: String(uid), at: 2, field: 0 })) ?? `uid-${uid}`
  }

  /** The user of this name, or undefined. */
  async accountOf(name: string): Promise<Account | undefined> {
    const read = (field: number) => this.#find({ file: 'passwd', key: name, at: 0, field })
    const [uid, gid] = [await read(2), await read(3)]
    return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
  }

  /** Id of the group, or undefined if no group has that name. */
  async idOfGroup(name: string): Promise<number | undefined> {
    const id = await this.#find({ file: 'group', key: name, at: 0, field: 2 })
    return id !== undefined && /^[0-9]+$/.test(id) ? Number(id) : undefined
  }

  /** Id of the user, or undefined if no user has that name. A name may be `uid-1234`. */
  async idOfUser(name: string): Promise<number | undefined> {
    const id = /^uid-([0-9]+)$/.exec(name)?.[1]
    return id === undefined ? (await this.accountOf(name))?.uid : Number(id)
  }

  /** Ids of all groups of the user. */
  async groupsOf(name: string): Promise<readonly number[]> {
    const ids = await this.#kept.get(`groups:${name}`, () => ask('id', ['-G', '--', name]))
    return ids?.match(/[0-9]+/g)?.map(Number) ?? []
  }

  #find(entry: Entry): Promise<string | undefined> {
    return this.#kept.get(Object.values(entry).join(':'), () => findField(entry))
  }
}

/** The entry of /etc/<file> whose column `at` is `key`, and the wanted column. */
interface Entry {
  readonly file: 'passwd' | 'group'
  readonly key: string
  readonly at: number
  readonly field: number
}

async function findField(entry: Entry): Promise<string | undefined> {
  const text = await readFile(`/etc/${entry.file}`, 'utf8').catch(() => '') // a container may lack it
  return pick(text, entry) ?? pick(await ask('getent', [entry.file, entry.key]), entry)
}

function pick(text: string, { key, at, field }: Entry): string | undefined {
  const columns = text.split('\n').map((line) => line.split(':'))
  return columns.find((line) => line[at] === key)?.[field]
}

/** Empty if the command is missing, finds nothing, or takes too long. */
async function ask(command: string, words: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, words, { timeout: ANSWER_TIMEOUT_MS })).stdout
  } catch {
    return ''
  }
}
