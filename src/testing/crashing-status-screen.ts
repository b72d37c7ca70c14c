// A program for the terminal test: a status screen whose second reading makes a component throw.
import { showStatusScreen } from '../tui/start.js'
import { exampleStatus } from './example-status.js'

let readings = 0
await showStatusScreen({
  reader: {
    async read() {
      readings += 1
      const status = exampleStatus(5)
      if (readings === 1) return status
      return {
        ...status,
        get nodes(): never {
          throw new Error('a component threw')
        },
      }
    },
  },
  readHistory: async () => [],
  actions: {
    lock: async () => {},
    unlock: async () => {},
    evict: async () => {},
    prepare: async () => {},
  },
  environment: process.env,
  nowMs: Date.now,
  intervalMs: 1500,
  signal: new AbortController().signal,
})
