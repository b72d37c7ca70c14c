import { DscError } from '../../failure/dsc-error.js'
import { describeFedTime, MAX_FED_WAITS } from '../../model/fed-time.js'
import { type DoorCall, type DoorResult, requireReader } from './door-call.js'
import { readFields, readNumber, readText } from './read-input.js'

/** More GPUs than any node has, and more time than a feed keeps to itself. */
const MAX_GPUS = 4096
const MAX_SINCE_MS = 86_400_000

/** Records how the asker's feed spent its time, at this node's clock. Rejects a task that another user holds. */
export async function answerFedTime(call: DoorCall): Promise<DoorResult> {
  const { record, node, nowMs } = call.service.cache
  const [dataset, task] = [readText(call.input, 'dataset'), readText(call.input, 'task')]
  await requireReader(call, dataset)
  const [sinceAgoMs, gpus] = [readBelow(call, 'sinceAgoMs', MAX_SINCE_MS), readBelow(call, 'gpus', MAX_GPUS)]
  const gpuMs = readBelow(call, 'gpuMs', sinceAgoMs * gpus)
  const raw = readFields(call.input.waits, 'waits')
  const names = Object.keys(raw).slice(0, MAX_FED_WAITS)
  const waits = Object.fromEntries(names.map((name) => [name.slice(0, 200), readNumber(raw, name)] as const))
  for (const { holder } of await record.listLeases({ task, purpose: 'use' }))
    if (holder.userId !== undefined && holder.userId !== call.asker.uid)
      throw new DscError('NOT_PERMITTED', `the task ${task} is another user's`)
  const time = describeFedTime({ sinceAgoMs, gpus, gpuMs, waits }, nowMs())
  await record.addEvent({ ...time, node, dataset, copyId: null, task })
  return { result: null }
}

function readBelow({ input }: DoorCall, name: string, most: number): number {
  const value = readNumber(input, name)
  if (value >= 0 && value <= most) return value
  throw new RangeError(`${name}: expected 0 to ${most}, found ${value}`)
}
