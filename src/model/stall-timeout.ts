/** How long a source may send no byte before an attempt fails, ms; `stage.stallTimeout` sets another. */
export const DEFAULT_STALL_TIMEOUT_MS = 30_000
