/**
 * How long a source may send no byte before an attempt fails, ms; `stage.stallTimeout` overrides it. Long enough for a
 * source that thinks before its first byte, short enough to notice a dead one.
 */
export const DEFAULT_STALL_TIMEOUT_MS = 30_000
