import type { NodeSurroundings } from '../cache/api/node-api.js'
import type { Narrator } from '../cache/surroundings.js'
import { compose } from '../compose.js'

/** Options of every call in the package. */
export interface CallOptions {
  /** Default: DSC_CONFIG, else the dsc.yaml beside or above the working directory, as for the command `dsc`. */
  readonly configPath?: string | undefined
  /** Ends the call: it rejects with INTERRUPTED. */
  readonly signal?: AbortSignal | undefined
}

const SILENT: Narrator = {
  note: () => {},
  warn: (sentence) => process.emitWarning(sentence, { type: 'DscWarning' }),
  progress: () => {},
}

/**
 * Sets dsc up for one call of a program, which asks the node's service where the command `dsc` would; `close` closes
 * everything the call opened.
 */
export function openSurroundings(
  { configPath, signal }: CallOptions,
  report: Narrator = SILENT,
): NodeSurroundings & { close(): Promise<void> } {
  return {
    ...compose(configPath, {
      onIgnoredFile: ({ path, reason }) => report.warn(`ignoring ${path}: ${reason}`),
      onRecordAway: report.note,
      onBegunAnew: report.note,
      isDoorUsed: true,
      ...(signal && { signal }),
    }),
    report,
    signal: signal ?? new AbortController().signal,
    environment: process.env,
  }
}
