// A program for the terminal tests: a status screen with an example. argv[2] sets what happens: `still`: nothing, and
// its clock stands still; `component`: the second reading makes a component throw; `timer`: code outside React throws.
// Both throw once the test has seen the first screen, and made the file `throw` in the folder of the program.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { showStatusScreen } from '../tui/start.js'
import { NOW_MS } from './example-copies.js'
import { EXAMPLE_SHARES, exampleDay, exampleStatus } from './example-status.js'

const how = process.argv[2]
let readings = 0
const untilTold = async () => {
  while (!existsSync('throw')) await sleep(50)
}
if (how === 'timer')
  void untilTold().then(() =>
    setTimeout(() => {
      throw new Error('a timer threw')
    }),
  )
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
    waitForChange: untilTold,
  },
  readHistory: async () => [],
  readDay: async () => exampleDay(),
  readReport: async () => () => ['nothing to tell'],
  actions: {
    perform: async ({ kind }) => (kind === 'undo' ? "took back ada's eviction of flowers, 4 GiB" : undefined),
    whyNotCancel: () => 'it is an example',
  },
  environment: process.env,
  nowMs: how === 'still' ? () => NOW_MS : Date.now,
  intervals: { pollMs: 1000, quietMs: 1000, pauseMs: 0 },
  signal: new AbortController().signal,
})
