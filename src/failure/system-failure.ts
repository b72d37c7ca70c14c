import { DscError, isDscError } from './dsc-error.js'
import type { FailureCode } from './failure-table.js'

interface Meaning {
  readonly code: FailureCode
  readonly sentence: string
  readonly hint: string
}

const DISK_FULL = {
  code: 'DISK_FULL',
  sentence: 'no space or no inodes left',
  hint: 'dsc evict --free 10GiB, or free space otherwise; then run the same command again',
} as const
const DISK_FAILS = {
  code: 'IO_FAILED',
  sentence: 'the disk or file system fails',
  hint: 'dmesg shows errors of the disk. Run the same command again once it works',
} as const
const TOO_MANY_FILES = {
  code: 'SYSTEM_LIMIT',
  sentence: 'too many files are open at once',
  hint: 'ulimit -n 1024, or set stage.concurrency: 4',
} as const

/** Meanings of the kernel's refusals, where no caller knows better. */
const MEANINGS: Readonly<Record<string, Meaning>> = {
  ENOSPC: DISK_FULL,
  EDQUOT: { ...DISK_FULL, sentence: 'the disk quota is used up' },
  EIO: DISK_FAILS,
  ESTALE: DISK_FAILS,
  ENXIO: DISK_FAILS,
  EROFS: {
    code: 'IO_FAILED',
    sentence: 'the file system is read-only',
    hint: 'mount it writable, or set cache.root to one that is',
  },
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  EFBIG: {
    code: 'SYSTEM_LIMIT',
    sentence: 'files may not become that large here',
    hint: 'ulimit -f unlimited, or use a file system that takes large files',
  },
  ENOMEM: { code: 'SYSTEM_LIMIT', sentence: 'memory is used up', hint: 'free memory, or raise its limit' },
  EAGAIN: {
    code: 'SYSTEM_LIMIT',
    sentence: 'no further process or thread may start',
    hint: 'ulimit -u, or the pids limit of the container, is reached: raise it',
  },
}

/** Messages of SQLite when the kernel refuses it something. */
const SQLITE_MEANINGS: readonly (readonly [RegExp, Meaning])[] = [
  [/^SQLITE_FULL/, DISK_FULL],
  [/^SQLITE_NOMEM/, MEANINGS.ENOMEM!],
  [/^SQLITE_(IOERR|CANTOPEN|READONLY|PERM|AUTH|PROTOCOL|NOLFS)/, DISK_FAILS],
  [
    /^SQLITE_(CORRUPT|NOTADB)/,
    { code: 'IO_FAILED', sentence: 'a database file is damaged', hint: 'dsc doctor tells which one' },
  ],
  [
    /^SQLITE_(BUSY|LOCKED)/,
    { code: 'IO_FAILED', sentence: 'another process locks the database', hint: 'run the same command again' },
  ],
]
/** Refusals that follow from what this program asked for. */
const OWN_MISTAKES = new Set(['EBADF', 'EINVAL', 'EFAULT', 'ENOTSOCK', 'EDOM', 'ENOSYS'])

/**
 * The failure behind an error of the kernel or of SQLite that no caller has explained: its cause lies outside this
 * program. Undefined for any other error, which is a bug of ours.
 */
export function explainSystemError(error: unknown): DscError | undefined {
  if (isDscError(error)) return error
  if (error instanceof Error && error.name === 'SuppressedError')
    return explainSystemError(firstFailure(error))
  const { code, syscall, path, message } = (error ?? {}) as NodeJS.ErrnoException
  if (typeof code !== 'string') return undefined
  const meaning = findMeaning(code, syscall)
  if (meaning === undefined) return undefined
  // A path through a descriptor means nothing outside of this process.
  const place = path === undefined || path.startsWith('/proc/self/fd/') ? '' : `${path}: `
  return new DscError(meaning.code, `${place}${meaning.sentence} (${message})`, {
    hint: meaning.hint,
    cause: error,
  })
}

/** The failure after which closing failed, too. Node 22 has no class for such errors. */
function firstFailure(error: Error & { readonly suppressed?: unknown }): unknown {
  return error.suppressed
}

function findMeaning(code: string, syscall: string | undefined): Meaning | undefined {
  if (code.startsWith('SQLITE_')) return SQLITE_MEANINGS.find(([pattern]) => pattern.test(code))?.[1]
  if (syscall === undefined || OWN_MISTAKES.has(code)) return MEANINGS[code]
  return (
    MEANINGS[code] ?? {
      code: 'IO_FAILED',
      sentence: 'this machine refuses it',
      hint: 'dsc --debug shows where; check the path and its permissions',
    }
  )
}
