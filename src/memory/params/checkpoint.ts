import { mkdir, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { unlessRejected } from '../../failure/unless-code.js'
import { decodeFrame, encodeFrame, PARAMETER_WIRE } from './message.js'
import type { ParameterStateParts } from './parameter-state.js'
import { type OptimizerSettings, STATE_COUNTS } from './plan/optimizer-settings.js'
import { layOutParameters } from './plan/parameter-layout.js'

/** Format version of checkpoint files. */
const CHECKPOINT_VERSION = 3
const MARK = PARAMETER_WIRE.mark

/** Bytes read at once. */
const PIECE_BYTES = 64 * 2 ** 20

/** Everything a central node needs to continue after a restart. */
export interface Checkpoint extends ParameterStateParts {
  readonly epoch: number
  readonly version: number
  readonly lastSteps: readonly number[]
  readonly optimizer: OptimizerSettings
  /** The settings that the server was started with: changes made since stay valid as long as these are the same. */
  readonly startedWith: OptimizerSettings
}

const NAME = 'params.checkpoint'

/** Writes a checkpoint so that after a power loss either the old or the new one is there, whole. */
export async function writeCheckpoint(folder: string, checkpoint: Checkpoint): Promise<void> {
  const { parameters, moments, ...state } = checkpoint
  const values = new Float32Array(parameters.length * (1 + moments.length))
  for (const [at, part] of [parameters, ...moments].entries()) values.set(part, at * parameters.length)
  await mkdir(folder, { recursive: true })
  const part = join(folder, `${NAME}.part`)
  const file = await open(part, 'w')
  try {
    for (const bytes of encodeFrame({ ...state, kind: 'dsc.params', checkpoint: CHECKPOINT_VERSION }, values))
      await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(part, join(folder, NAME))
  await using directory = await open(folder)
  await directory.sync()
}

/** The checkpoint in `folder`; undefined before the first one. */
export async function readCheckpoint(folder: string): Promise<Checkpoint | undefined> {
  const path = join(folder, NAME)
  const bytes = await unlessRejected(['ENOENT'], readWhole(path))
  if (!bytes) return undefined
  try {
    const { header, values } = decodeFrame(bytes)
    const state = header as Omit<Checkpoint, 'parameters' | 'moments'> & { checkpoint: number }
    if (state.checkpoint !== CHECKPOINT_VERSION)
      throw new Error(`version ${state.checkpoint}, not ${CHECKPOINT_VERSION}`)
    const { slots, epoch, version, lastSteps, optimizer, startedWith, steps } = state
    const { length } = layOutParameters(slots)
    const count = STATE_COUNTS[optimizer.kind]
    if (values.length !== length * (1 + count))
      throw new Error(`${values.length} values, not ${length * (1 + count)}`)
    const [parameters, ...moments] = Array.from({ length: 1 + count }, (_, at) =>
      values.slice(at * length, (at + 1) * length),
    )
    const training = { optimizer, startedWith, steps, parameters: parameters!, moments }
    return { slots, epoch, version, lastSteps, ...training }
  } catch (cause) {
    throw new DscError('PARAMS_REFUSED', `the checkpoint ${path} is unusable: ${String(cause)}`, {
      hint: 'move it away to start from the parameters of the workers',
      cause,
    })
  }
}

/** Reads a file of any size: Node's own `readFile` is limited to 2 GiB, a model of 180 million parameters. */
async function readWhole(path: string): Promise<Buffer> {
  await using file = await open(path)
  const { size } = await file.stat()
  const bytes = Buffer.allocUnsafe(size)
  let at = 0
  while (at < size) {
    const { bytesRead } = await file.read(bytes, at, Math.min(PIECE_BYTES, size - at), at)
    at += bytesRead
    const isForeign = at >= MARK.length && bytes.toString('latin1', 0, MARK.length) !== MARK // its rest is not worth its memory
    if (bytesRead === 0 || isForeign) break
  }
  return bytes.subarray(0, at)
}
