import type { ServerResponse } from 'node:http'
import type { CentralNode } from './central-node.js'
import { narrowParameters } from './half-parameters.js'
import { encodeFrame } from './message.js'
import type { ParameterState } from './parameter-state.js'

/** How long a pull without news waits for an answer, so that no proxy closes the connection, in ms. */
const MAX_WAIT_MS = 20_000

/** Answers GET /v1/pull with the parameters, or with those that changed since the worker's version. */
export async function answerPull(
  node: CentralNode,
  query: URLSearchParams,
  { response, send }: { response: ServerResponse; send: (status: number, body?: object) => void },
): Promise<void> {
  const number = (name: string, fallback: number) => Number(query.get(name) ?? fallback)
  const have = number('have', -1)
  const sameEpoch = number('epoch', -1) === node.epoch
  const limit = AbortSignal.timeout(MAX_WAIT_MS)
  const gone = new AbortController()
  response.once('close', () => gone.abort())
  const wanted = { version: number('atLeast', 0), step: number('step', 0), epoch: number('sees', -1) }
  await node.waitFor(wanted, AbortSignal.any([limit, gone.signal]))
  if (gone.signal.aborted) return
  if (node.abortReason !== undefined)
    return send(410, { error: { reason: 'aborted', message: node.abortReason } })
  const { state } = node
  if (limit.aborted || !state) return send(202)
  // `have` is the version in the half that will be written: it needs only later changes.
  const changed = state.layout.slots
    .map((_, at) => at)
    .filter((at) => !sameEpoch || have < 0 || state.changedAt[at]! > have)
  const isNarrow = query.get('halves') === '1' && state.layout.slots.some(({ type }) => isHalf(type))
  const isWhole = changed.length === state.layout.slots.length && !isNarrow
  const header = {
    version: node.version,
    epoch: node.epoch,
    lastStep: node.lastSteps[number('rank', 0)] ?? -1,
    changed: isWhole ? undefined : changed,
    halves: isNarrow || undefined,
  }
  // Copied at once: the next push must not change bytes that are still being sent.
  const values = isWhole ? state.parameters.slice() : gather(state, changed, isNarrow ? 'halves' : 'floats')
  const parts = encodeFrame(header, values)
  response.writeHead(200, {
    'content-type': 'application/octet-stream',
    'content-length': parts.reduce((sum, part) => sum + part.length, 0),
  })
  for (const part of parts) response.write(part)
  response.end()
}

/** Concatenates those slots without padding; on request as halves, if workers hold the slot as halves. */
function gather(
  { layout, parameters }: ParameterState,
  changed: readonly number[],
  form: 'floats' | 'halves',
): Uint8Array {
  const parts = changed.map((at) => {
    const { offset, length, type } = layout.slots[at]!
    const values = parameters.subarray(offset, offset + length)
    const sent = form === 'halves' && isHalf(type) ? narrowParameters(values, type) : values
    return new Uint8Array(sent.buffer, sent.byteOffset, sent.byteLength)
  })
  return Buffer.concat(parts)
}

function isHalf(type: string | undefined): type is 'bf16' | 'f16' {
  return type === 'bf16' || type === 'f16'
}
