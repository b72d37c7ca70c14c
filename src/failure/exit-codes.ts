/**
 * Exit codes, one for each thing that a script may want to do next; a failure's code says what happened. Public, as
 * the codes are: scripts match on them.
 */
export const EXIT_CODES = {
  success: { exitCode: 0, meaning: 'it worked' },
  internal: { exitCode: 1, meaning: 'an error of dsc itself, please report it' },
  usage: { exitCode: 2, meaning: 'a wrong argument' },
  setup: { exitCode: 3, meaning: 'the configuration or the machine needs a change' },
  notFound: { exitCode: 4, meaning: 'no such dataset, copy, lease or source' },
  noRoom: { exitCode: 5, meaning: 'the limits leave no room: wait, release, or use another node' },
  tooSmall: { exitCode: 6, meaning: 'the disk or the memory is too small' },
  refused: { exitCode: 7, meaning: 'credentials, permissions, or a name that cannot be used' },
  tryLater: { exitCode: 8, meaning: 'the source is away, slow or changing: retry' },
  damaged: { exitCode: 9, meaning: 'bytes do not match their checksum' },
  conflict: { exitCode: 10, meaning: 'in use, taken, or does not match' },
  unavailable: { exitCode: 11, meaning: 'the record, an agent or a peer does not answer: retry' },
  cannotRun: { exitCode: 126, meaning: 'the command after -- cannot be run' },
  noCommand: { exitCode: 127, meaning: 'the command after -- does not exist' },
  interrupted: { exitCode: 130, meaning: 'stopped by a signal or by --deadline' },
} as const
