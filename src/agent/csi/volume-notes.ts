import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DscError } from '../../failure/dsc-error.js'
import { tryJson } from '../../model/try-json.js'
import { HeldFolder } from '../../platform/held-folder.js'
import type { VolumeRequest } from './volume-request.js'

/** A note about a volume, for an agent that was killed and starts again. Format version 1. */
export interface VolumeNote extends Pick<VolumeRequest, 'volumeId' | 'target' | 'pod'> {
  readonly version: 1
  /** The dataset or the URL that the pod named. */
  readonly named: string
  /** Name of the dataset. */
  readonly dataset: string
  /** The copy that is mounted, or about to be; absent: it is not ready yet. */
  readonly copyId?: string
  /** The pod gave it back, but its lease could not be ended yet. */
  readonly isOver?: true
}

const FILE = /^[0-9a-f]{64}\.json$/
/** A note that was being written when the agent was killed. */
const DRAFT = /^[0-9a-f]{64}\.json\.new$/

/**
 * The volumes of this node, one file for each. A note is written before its lease is taken and removed after the lease
 * has ended, so that no lease is ever without a note, not even after a power loss.
 */
export class VolumeNotes {
  readonly #folder: string
  readonly #notes = new Map<string, VolumeNote>()

  /** Reads the notes in a folder, and creates it if it is missing. Deletes damaged notes and reports them to `note`. */
  constructor(folder: string, note: (sentence: string) => void) {
    this.#folder = folder
    makeFolder(folder)
    for (const name of readdirSync(folder)) {
      if (FILE.test(name)) this.#read(join(folder, name), note)
      else if (DRAFT.test(name)) rmSync(join(folder, name))
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
    this.#write(note, { isNew: !this.#notes.has(note.target) })
    this.#notes.set(note.target, note)
  }

  /** Notes that a volume is over: here in any case, and on disk. Throws if the disk refuses it. */
  end(note: VolumeNote): void {
    const over: VolumeNote = { ...note, isOver: true }
    this.#notes.set(note.target, over)
    this.#write(over, { isNew: false })
  }

  remove(target: string): void {
    rmSync(join(this.#folder, nameFile(target)), { force: true })
    this.#notes.delete(target)
  }

  #read(path: string, note: (sentence: string) => void): void {
    const raw = tryJson(readFileSync(path, 'utf8')) as Partial<VolumeNote> | null | undefined
    if (isNote(raw)) this.#notes.set(raw.target, raw)
    else if (typeof raw?.version === 'number' && raw.version !== 1)
      note(`ignored ${path}: expected a note of version 1, found ${raw.version}`)
    else {
      rmSync(path)
      note(`deleted ${path}: expected the note of a volume, found half of one`)
    }
  }

  #write(note: VolumeNote, { isNew }: { readonly isNew: boolean }): void {
    const name = nameFile(note.target)
    const draft = `${name}.new`
    writeFileSync(join(this.#folder, draft), JSON.stringify(note), { mode: 0o600, flush: true })
    using folder = HeldFolder.find(this.#folder)!
    folder.move(draft, folder, name)
    if (isNew) folder.sync() // else the name means one of two whole notes, and either will do
  }
}

function nameFile(target: string): string {
  return `${createHash('sha256').update(target).digest('hex')}.json`
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

function isNote(raw: Partial<VolumeNote> | null | undefined): raw is VolumeNote {
  const { version, volumeId, target, named, dataset, copyId = '', pod } = raw ?? {}
  const texts = [volumeId, target, named, dataset, copyId, pod?.uid, pod?.namespace, pod?.name]
  return version === 1 && texts.every((text) => typeof text === 'string')
}
