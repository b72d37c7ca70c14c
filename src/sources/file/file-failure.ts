import { SourceFailure } from '../../failure/source-failure.js'

/** Turns a file system failure into the failure shown to the user; returns anything else unchanged. */
export function describeFileError(error: unknown, what: string): unknown {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'ENOENT' || code === 'ENOTDIR')
    return new SourceFailure('SOURCE_NOT_FOUND', `${what}: no such directory or file`, {
      cause: error,
      hint: 'check the path; is the file system mounted on this node?',
    })
  if (code === 'EACCES' || code === 'EPERM')
    return new SourceFailure('SOURCE_DENIED', `${what}: no permission to read`, {
      cause: error,
      hint: 'check the permissions of the directory for the user that runs dsc',
    })
  if (code === 'EIO' || code === 'ESTALE')
    return new SourceFailure('SOURCE_UNREACHABLE', `${what}: the file system fails to read (${code})`, {
      isTransient: true,
      cause: error,
      hint: 'check the file system that holds the source',
    })
  return error
}
