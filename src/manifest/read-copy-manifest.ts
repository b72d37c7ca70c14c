import type { Stripe } from '../model/copy.js'
import type { Dataset } from '../model/dataset.js'
import type { Listing } from './listing.js'
import { Manifest } from './manifest.js'
import { isUnusable } from './manifest-file.js'

/** The facts about a whole copy that the manifest in its directory states. */
export interface CopyManifest {
  readonly dataset: Dataset
  readonly listing: Listing
  /** Absent: the copy has every object of the version. */
  readonly stripe?: Stripe | undefined
  /** Whether every object (of the stripe) is present and verified. */
  readonly isComplete: boolean
}

/** Reads the manifest of a copy's directory; undefined without a manifest, or if its listing is incomplete. */
export function readCopyManifest(copyDirectory: string): CopyManifest | undefined {
  // Read-only from the start: a published manifest is one file, and opening it for writing would add a journal.
  using manifest = Manifest.findPublished(copyDirectory)
  if (manifest === undefined) return undefined
  try {
    const definition = manifest.readSetting('definition')
    const listing = manifest.readSetting('listing')
    if (definition === undefined || listing === undefined) return undefined
    const stripe = manifest.readSetting('stripe')
    return {
      dataset: JSON.parse(definition) as Dataset,
      listing: JSON.parse(listing) as Listing,
      stripe: stripe === undefined ? undefined : (JSON.parse(stripe) as Stripe),
      isComplete: manifest.count('missing').files === 0,
    }
  } catch (error) {
    // Opening reads only its beginning.
    if (isUnusable(error) || error instanceof SyntaxError) return undefined
    throw error
  }
}
