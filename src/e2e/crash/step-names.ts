/** Changes of the record, the weightiest first: a transaction is named for the first that it made. */
const CHANGES: readonly (readonly [RegExp, string])[] = [
  [/UPDATE copies SET state = 'staging'/, 'record: admitted'],
  [/UPDATE copies SET state = 'ready'/, 'record: ready'],
  [/UPDATE copies SET state = 'evicting'/, 'record: evicting'],
  [/INSERT INTO copies/, 'record: copy added'],
  [/DELETE FROM copies/, 'record: copy gone'],
  [/UPDATE copies SET lock_state/, 'record: lock'],
  [/INSERT INTO leases/, 'record: leased'],
  [/DELETE FROM leases/, 'record: lease gone'],
]

/** The step that a commit is, told by its statements; undefined when it changes nothing that must survive. */
export function nameOfCommit(statements: readonly string[]): string | undefined {
  return CHANGES.find(([change]) => statements.some((sql) => change.test(sql)))?.[1]
}

/** The step that a call of the file system is, told by its paths; undefined when it is outside of every cache. */
export function nameOfPath(call: string, words: readonly unknown[]): string | undefined {
  const [first, second] = words.map(String)
  const from = first ?? ''
  const to = second ?? ''
  switch (call) {
    case 'rename':
      if (/\/trash\/kept-[^/]*$/.test(to)) return 'kept in the trash'
      if (/\/trash\/kept-/.test(from))
        return /\/copies\//.test(to) ? 'taken out of the trash' : 'kept copy dropped'
      if (/\/trash\/|\.dsc-trash-/.test(to)) return 'moved to the trash'
      if (/\/copies\//.test(to) && /\/staging\/[^/]+$/.test(from)) return 'published'
      return /repair-/.test(from) ? 'repaired file placed' : undefined
    case 'mkdir':
      if (/repair-[^/]*$/.test(from)) return 'repair begun'
      return /\/staging\/[^/]+$/.test(from) ? 'staging directory made' : undefined
    case 'link':
      return 'file linked'
    case 'symlink':
      return 'folder pointed at'
    case 'open':
      return isWriting(words[1]) && /\/staging\/[^/]+\/(files\/|\d+$)/.test(from) ? 'file begun' : undefined
    case 'rmdir':
      if (/\/trash\/[^/]+$|\.dsc-trash-[^/]*$/.test(from)) return 'trash removed'
      return /\/trash\//.test(from) ? 'folder in the trash removed' : undefined
    default:
      return undefined
  }
}

function isWriting(flags: unknown): boolean {
  return typeof flags === 'number' ? (flags & 3) !== 0 : /[wa+]/.test(String(flags ?? 'r'))
}
