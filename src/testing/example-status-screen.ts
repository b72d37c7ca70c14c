// A program for the terminal tests: a status screen with an example. argv[2] sets what happens: `still`: nothing, and
// its clock stands still; `component`: the second reading makes a component throw; `timer`: code outside React throws.
import { setTimeout as sleep } from 'node:timers/promises'
import { showStatusScreen } from '../tui/start.js'
import { NOW_MS } from './example-copies.js'
import { EXAMPLE_SHARES, exampleDay, exampleStatus } from './example-status.js'

const how = process.argv[2]
const FIRST_SCREEN_MS = 1500
let readings = 0
if (how === 'timer') {
  setTimeout(() => {
    throw new Error('a timer threw')
  }, FIRST_SCREEN_MS)
}
await showStatusScreen({
  ownNode: 'gpu-01',
  reader: {
    async read() {
      readings += 1
      const status = how === 'still' ? exampleStatus(60, { shares: EXAMPLE_SHARES }) : exampleStatus(5)
      if (readings === 1 || how !== 'component') return status
      return {
        ...status,
        get nodes(): never {
          throw new Error('a component threw')
        },
      }
    },
    completeInMs: () => undefined,
    waitForChange: ({ pollMs }) => sleep(pollMs),
  },
  readHistory: async () => [],
  readDay: async () => exampleDay(),
  readReport: async () => () => ['nothing to tell'],
  actions: {
    lock: async () => {},
    unlock: async () => {},
    evict: async () => {},
    release: async () => {},
    cancel: async () => {},
    whyNotCancel: () => 'it is an example',
    prepare: async () => {},
    undo: async () => "took back ada's eviction of flowers, 4 GiB",
  },
  environment: process.env,
  nowMs: how === 'still' ? () => NOW_MS : Date.now,
  intervals: { pollMs: FIRST_SCREEN_MS, quietMs: FIRST_SCREEN_MS, pauseMs: 0 },
  signal: new AbortController().signal,
})
