import { DscError } from '../../failure/dsc-error.js'
import { formatCount } from '../../model/format-count.js'
import type { FeedState } from '../plan/feed-state.js'

/** The feed is dead or silent. `state` is where the reader was: `feed.seek(state)` continues with the next batch. */
export class FeedGone extends DscError {
  readonly state: FeedState

  constructor(cause: DscError, state: FeedState) {
    super(
      'FEED_GONE',
      `${cause.message}; ${formatCount(state.position, 'sample')} of epoch ${state.epoch} were received`,
      {
        hint: 'feed.seek(error.state) goes on with the next one, in a feed that was started again',
        cause,
      },
    )
    this.state = state
  }
}
