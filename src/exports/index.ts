// What `import … from 'dsc'` gives. Other rooms are behind doors of their own: 'dsc/exchange', 'dsc/params', 'dsc/memory'.
export { DscError, type FailureCode } from '../failure/dsc-error.js'
export type { FeedItem } from '../feed/batches/batch-reader.js'
export type { Feed } from '../feed/batches/feed.js'
export type { FeedGone } from '../feed/batches/feed-gone.js'
export type { FeedState } from '../feed/plan/feed-state.js'
export { type OpenFeedOptions, openFeed } from './open-feed.js'
export { type PreparedDataset, type PrepareOptions, prepare } from './prepare.js'
export { type CopyStatus, type Status, type StatusOptions, status } from './status.js'
