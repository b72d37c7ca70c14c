import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import type { VolumeRequest } from './volume-request.js'

/** What the agent must know of a volume after it was killed. Format version 1. */
export interface VolumeNote extends Pick<VolumeRequest, 'volumeId' | 'target' | 'pod'> {
  readonly version: 1
  /** What the pod named: a dataset, or a URL. */
  readonly named: string
  /** Name of the dataset. */
  readonly dataset: string
  /** The copy that is mounted, or about to be; absent: it is not ready yet. */
  readonly copyId?: string
  /** The pod gave it back, but its lease could not be ended yet. */
  readonly isOver?: true
}

const FILE = /^[0-9a-f]{64}\.json$/

/**
 * The volumes of this node, one file for each. A note is written before its lease is taken and removed after the lease
 * has ended, so that no lease is ever without a note.
 */
export class VolumeNotes {
  readonly #folder: string
  readonly #notes = new Map<string, VolumeNote>()

  /** Reads the notes in a folder, and creates it if it is missing. Ignores files that are no notes. */
  constructor(folder: string) {
    this.#folder = folder
    makeFolder(folder)
    for (const name of readdirSync(folder)) {
      const note = FILE.test(name) ? readNote(join(folder, name)) : undefined
      if (note !== undefined) this.#notes.set(note.target, note)
    }
  }

  list(): readonly VolumeNote[] {
    return [...this.#notes.values()]
  }

  /** The note of the volume at `target`: one volume of a claim is at several paths, one for each pod. */
  find(target: string): VolumeNote | undefined {
    return this.#notes.get(target)
  }

  save(note: VolumeNote): void {
    this.#write(note)
    this.#notes.set(note.target, note)
  }

  /** Notes that a volume is over: here in any case, and on disk. Throws if the disk refuses it. */
  end(note: VolumeNote): void {
    const over: VolumeNote = { ...note, isOver: true }
    this.#notes.set(note.target, over)
    this.#write(over)
  }

  #write(note: VolumeNote): void {
    const path = this.#pathOf(note.target)
    writeFileSync(`${path}.new`, JSON.stringify(note), { mode: 0o600 })
    renameSync(`${path}.new`, path)
  }

  remove(target: string): void {
    rmSync(this.#pathOf(target), { force: true })
    this.#notes.delete(target)
  }

  #pathOf(target: string): string {
    return join(this.#folder, `${createHash('sha256').update(target).digest('hex')}.json`)
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new DscError('CONFIG_INVALID', `agent.csi: cannot make ${folder} (${code})`, {
      hint: 'start dsc agent --csi as root; it becomes the owner of the cache',
      cause: error,
    })
  }
}

/** Undefined for a file that is no note of this version, such as half of one after a power loss. */
function readNote(path: string): VolumeNote | undefined {
  try {
    const note = JSON.parse(readFileSync(path, 'utf8')) as Partial<VolumeNote>
    const { uid, namespace, name } = note.pod ?? {}
    const texts = [
      note.volumeId,
      note.target,
      note.named,
      note.dataset,
      uid,
      namespace,
      name,
      note.copyId ?? '',
    ]
    return note.version === 1 && texts.every((text) => typeof text === 'string')
      ? (note as VolumeNote)
      : undefined
  } catch {
    return undefined
  }
}
