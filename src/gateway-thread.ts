import { parentPort, workerData } from 'node:worker_threads'
import { Gateway } from './agent/gateway/gateway.js'
import type { GatewayThreadData, GatewayThreadReply } from './agent/gateway/gateway-thread-data.js'
import { waitForRecord } from './cache/wait-for-record.js'
import { compose } from './compose.js'

// One of the threads that answer the clients of a gateway: it reads the same configuration as its agent, and opens the
// record for itself. It ends when it is told anything.
const { configPath, options } = workerData as GatewayThreadData
const reply = (message: GatewayThreadReply) => parentPort!.postMessage(message)
const stopping = new Promise<number>((resolve) => parentPort!.once('message', resolve))

const composed = compose(configPath)
const note = (sentence: string) => reply({ note: sentence })
const cache = await waitForRecord(composed.openCache, { onAway: note })
const gateway = await Gateway.open({
  ...options,
  cache,
  isShared: true,
  onCounts: (counts) => reply({ counts }),
  note,
})
await gateway.stop(await stopping)
await composed.close()
