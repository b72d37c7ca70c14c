import { DscError } from '../../failure/dsc-error.js'
import type { SampleSource, SampleStatus } from '../../samples/sample-source.js'
import type { Slot } from './slot.js'

/** No source could deliver a sample. */
export class LostSample extends DscError {
  readonly sample: number

  constructor(source: Pick<SampleSource, 'table' | 'nodeName'>, slot: Slot, status: SampleStatus) {
    const { sample, node } = slot
    super(
      'FEED_SAMPLE_LOST',
      `sample ${sample} (${source.table.nameOf(sample)}) is ${status} on ${source.nodeName(node)}`,
      { hint: 'dsc verify <dataset>; if the data has changed, start the feed again' },
    )
    this.sample = sample
  }
}
