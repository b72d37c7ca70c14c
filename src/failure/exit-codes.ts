/**
 * Exit codes, one for each thing that a script may want to do next; a failure's code says what happened. Public, as
 * the codes are: scripts match on them.
 */
export const EXIT_CODES = {
  usage: 2,
  setup: 3,
  notFound: 4,
  noRoom: 5,
  tooSmall: 6,
  refused: 7,
  tryLater: 8,
  damaged: 9,
  conflict: 10,
  unavailable: 11,
  cannotRun: 126,
  noCommand: 127,
  interrupted: 130,
} as const

/** The meanings of all exit codes. */
export const EXIT_MEANINGS: readonly (readonly [exitCode: number, meaning: string])[] = [
  [0, 'it worked'],
  [1, 'an error of dsc itself, please report it'],
  [EXIT_CODES.usage, 'a wrong argument'],
  [EXIT_CODES.setup, 'the configuration or the machine needs a change'],
  [EXIT_CODES.notFound, 'no such dataset, copy, lease or source'],
  [EXIT_CODES.noRoom, 'the limits leave no room: wait, release, or use another node'],
  [EXIT_CODES.tooSmall, 'the disk or the memory is too small'],
  [EXIT_CODES.refused, 'credentials, permissions, or a name that cannot be used'],
  [EXIT_CODES.tryLater, 'the source is away, slow or changing: retry'],
  [EXIT_CODES.damaged, 'bytes do not match their checksum'],
  [EXIT_CODES.conflict, 'in use, taken, or does not match'],
  [EXIT_CODES.unavailable, 'the record, an agent or a peer does not answer: retry'],
  [EXIT_CODES.cannotRun, 'the command after -- cannot be run'],
  [EXIT_CODES.noCommand, 'the command after -- does not exist'],
  [EXIT_CODES.interrupted, 'stopped by a signal or by --deadline'],
]
