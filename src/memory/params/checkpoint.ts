import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { decodeFrame, encodeFrame } from './message.js'
import type { ParameterSlot } from './plan/parameter-layout.js'

/** Format version of checkpoint files. */
const CHECKPOINT_VERSION = 1

/** Everything a central node needs to go on after a restart. */
export interface Checkpoint {
  readonly slots: readonly ParameterSlot[]
  readonly epoch: number
  readonly version: number
  readonly lastSteps: readonly number[]
  readonly parameters: Float32Array
  readonly velocity: Float32Array
}

const NAME = 'params.checkpoint'

/** Writes a checkpoint so that after power loss there is the old one or the new one, whole. */
export async function writeCheckpoint(folder: string, checkpoint: Checkpoint): Promise<void> {
  const { parameters, velocity, ...state } = checkpoint
  const values = new Float32Array(parameters.length + velocity.length)
  values.set(parameters)
  values.set(velocity, parameters.length)
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
  const directory = await open(folder)
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

/** The checkpoint in `folder`; undefined when there is none yet. */
export async function readCheckpoint(folder: string): Promise<Checkpoint | undefined> {
  const path = join(folder, NAME)
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!bytes) return undefined
  try {
    const { header, values } = decodeFrame(bytes)
    const { slots, epoch, version, lastSteps, checkpoint } = header as Checkpoint & { checkpoint: number }
    if (checkpoint !== CHECKPOINT_VERSION) throw new Error(`version ${checkpoint}, not ${CHECKPOINT_VERSION}`)
    const half = values.length / 2
    return {
      slots,
      epoch,
      version,
      lastSteps,
      parameters: values.slice(0, half),
      velocity: values.slice(half),
    }
  } catch (cause) {
    throw new DscError('PARAMS_REFUSED', `the checkpoint ${path} is unusable: ${String(cause)}`, {
      hint: 'move it away to start from the parameters of the workers',
      cause,
    })
  }
}
