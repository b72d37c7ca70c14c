import type { HeldFiles } from './held-files.js'
import type { PageTouch } from './page-touch.js'

/** Samples that clients read themselves, and the reader that runs ahead of them. */
export interface MappedSamples {
  readonly files: HeldFiles
  readonly touch: PageTouch
}
