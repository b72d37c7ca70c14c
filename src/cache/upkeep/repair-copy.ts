import {
  closeSync,
  constants,
  copyFileSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  type Stats,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { atEndNow } from '../../failure/closers.js'
import { DscError, describeFailure, isDscError, type KnownFailure } from '../../failure/dsc-error.js'
import { throwIfStopped } from '../../failure/throw-if-stopped.js'
import { unlessCode } from '../../failure/unless-code.js'
import { Manifest } from '../../manifest/manifest.js'
import type { ManifestEntry } from '../../manifest/manifest-entry.js'
import { DEFAULT_STALL_TIMEOUT_MS } from '../../model/stall-timeout.js'
import { describeDiskFailure } from '../../platform/disk-failure.js'
import { type HeldFolder, nameHeldFolder } from '../../platform/held-folder.js'
import { changeFileMode, onHeldPath, resolveHeldPath } from '../../platform/held-path.js'
import { removeDirectory } from '../../platform/remove-directory.js'
import { checkObject, type ObjectDamage } from '../../proof/check-object.js'
import { planParts } from '../../proof/plan-parts.js'
import { withRetries } from '../../sources/retry.js'
import type { Fetcher, Source } from '../../sources/source.js'
import { syncPath } from '../download/publish-copy.js'
import { LINKING, takeFile } from '../download/take-file.js'
import { EtagJudge } from '../download/transfer/etag-judge.js'
import { preallocate } from '../download/transfer/file-sink.js'
import { KeptFolders } from '../download/transfer/kept-folders.js'
import { PartTransfer, WholeTransfer } from '../download/transfer/transfer.js'
import type { SharedRepairs } from './shared-repairs.js'
import type { Damage } from './verify-copy.js'

/** Result of a repair, including what it could not repair. */
export interface Repair {
  readonly repairedFiles: number
  readonly fetchedBytes: number
  /** Number of files removed because the manifest does not have them. */
  readonly removedFiles: number
  /** Files whose bytes the source no longer has: they are left as they were. */
  readonly failures: readonly (KnownFailure & { readonly path: string })[]
}

interface RepairOptions {
  readonly source: Source
  /** The copy's directory, for its manifest. */
  readonly directory: HeldFolder
  /** Its files: below the directory, or in the adopted folder. */
  readonly files: HeldFolder
  /** An empty folder on the file system of the files, to assemble them in. */
  readonly bench: HeldFolder
  readonly damages: readonly Damage[]
  /** Repairs of the copies before this one. */
  readonly shared?: SharedRepairs | undefined
  readonly stallTimeoutMs?: number | undefined
  readonly signal: AbortSignal
}

/**
 * Brings a published copy back in line with its manifest: fetches damaged files, for large ones only the wrong parts,
 * and removes files that do not belong. Each file is assembled outside the tree, checked against the manifest, synced
 * and renamed into place, so a reader sees the old file or the right one. A file that several copies share is fetched
 * for the first of them. Continues after a file that the source no
 * longer has. Rejects on failures that would hit every other file too, and if a folder of the copy is a link.
 */
export async function repairCopy(options: RepairOptions): Promise<Repair> {
  const repair = new CopyRepair(options)
  try {
    for (const damage of options.damages) {
      throwIfStopped(options.signal)
      await repair.mend(damage)
    }
    return repair.result
  } catch (error) {
    throw describeDiskFailure(nameHeldFolder(error, options.files), options.files.name)
  } finally {
    await repair.close()
  }
}

class CopyRepair {
  readonly #options: RepairOptions
  readonly #manifest: Manifest
  readonly #counts = { repairedFiles: 0, fetchedBytes: 0, removedFiles: 0 }
  readonly #failures: Repair['failures'][number][] = []
  #fetcher: Fetcher | undefined
  readonly #folders = new KeptFolders()

  constructor(options: RepairOptions) {
    this.#options = options
    this.#manifest = Manifest.openPublished(options.directory.path)
  }

  get result(): Repair {
    return { ...this.#counts, failures: this.#failures }
  }

  async close(): Promise<void> {
    await this.#fetcher?.close()
    this.#folders.close()
    this.#manifest.close()
  }

  async mend(damage: Damage): Promise<void> {
    const target = `${this.#options.files.path}/${damage.path}`
    if (damage.problem === 'unexpected') {
      await removeDirectory(target)
      this.#counts.removedFiles += 1
      return
    }
    const entry = this.#manifest.find(damage.path)
    if (!entry) {
      const { name } = this.#options.directory
      throw new DscError('USAGE', `${damage.path} is not in the manifest of ${name}`)
    }
    const draft = this.#options.bench.pathOf(`${entry.id}`)
    const isFile = damage.problem === 'content' || damage.problem === 'size'
    const damaged = isFile ? lstatSync(target, { throwIfNoEntry: false }) : undefined
    if (!(await this.#takeShared(entry, damaged, draft)) && !(await this.#fetchRight(entry, damage, draft)))
      return
    changeFileMode(draft, 0o444)
    await syncPath(draft)
    if (damage.problem === 'not-a-file') await removeDirectory(target)
    onHeldPath(target, (to) => renameSync(draft, to), { makesFolders: true })
    await syncPath(onHeldPath(target, (to) => resolveHeldPath(dirname(to))))
    this.#counts.repairedFiles += 1
    this.#options.shared?.note(damaged, join(this.#options.files.name, damage.path))
  }

  /** Whether the draft is now the file that replaced this one in another copy. */
  async #takeShared(entry: ManifestEntry, damaged: Stats | undefined, draft: string): Promise<boolean> {
    const from = this.#options.shared?.find(damaged)
    if (from === undefined) return false
    const stats = lstatSync(from, { throwIfNoEntry: false })
    if (!stats?.isFile() || !takeFile(from, draft, { stats, places: LINKING })) return false
    const expected = { ...entry, digests: this.#manifest.parts.digestsOf(entry) }
    if ((await checkObject(draft, expected, this.#options.signal)) === undefined) return true
    rmSync(draft)
    return false
  }

  /** False: the source no longer has these bytes; the failure is recorded. */
  async #fetchRight(entry: ManifestEntry, damage: Damage, draft: string): Promise<boolean> {
    const { source, signal } = this.#options
    try {
      this.#counts.fetchedBytes += await this.#fetch(entry, damage, draft)
      const expected = { ...entry, digests: this.#manifest.parts.digestsOf(entry) }
      const wrong = await checkObject(draft, expected, signal)
      if (wrong) throw sourceChanged(source.url, entry.key, wrong)
      return true
    } catch (error) {
      if (!isDscError(error, 'SOURCE_CHANGED', 'SOURCE_NOT_FOUND')) throw error
      this.#failures.push({ path: entry.key, ...describeFailure(error) })
      return false
    }
  }

  async #fetch(entry: ManifestEntry, damage: Damage, draft: string): Promise<number> {
    const { source, files } = this.#options
    this.#fetcher ??= await source.openFetcher({ connections: 4 })
    const tools = { fetcher: this.#fetcher, folders: this.#folders }
    const object = {
      key: entry.key,
      etag: entry.etag,
      versionId: entry.versionId,
      checksum: entry.checksum,
      sizeBytes: entry.sizeBytes,
      path: draft,
    }
    if (entry.partBytes === null) {
      // Its etag may look like an MD5 and be none; the manifest has the digest.
      const judge = entry.verifiedBy === 'own-sha256' ? { judge: EtagJudge.ofNone() } : {}
      await this.#carryOut(new WholeTransfer(tools, { object, urgency: 'listed', ...judge }))
      return entry.sizeBytes
    }
    const isKept = damage.parts !== undefined && copyFile(`${files.path}/${entry.key}`, draft)
    if (!isKept) preallocate(draft, entry.sizeBytes)
    const parts = planParts(entry.sizeBytes, entry.partBytes)
    const wanted = isKept ? parts.filter((part) => damage.parts?.includes(part.number)) : parts
    for (const part of wanted) {
      const options = {
        tools,
        object,
        part,
        proofAlgorithm: undefined,
        needsDigest: false,
        isRepeated: false,
        urgency: 'listed' as const,
      }
      await this.#carryOut(new PartTransfer(options))
    }
    return wanted.reduce((sum, { length }) => sum + length, 0)
  }

  async #carryOut(transfer: WholeTransfer | PartTransfer): Promise<void> {
    const { stallTimeoutMs = DEFAULT_STALL_TIMEOUT_MS, signal } = this.#options
    try {
      await withRetries<unknown>(() => transfer.attempt({ stallTimeoutMs, signal }), { signal })
    } catch (error) {
      transfer.leave()
      throw error
    }
  }
}

/** False: there is no such file. */
function copyFile(from: string, to: string): boolean {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW
  const descriptor = unlessCode(['ENOENT'], () => onHeldPath(from, (path) => openSync(path, flags)))
  if (descriptor === undefined) return false
  using _ = atEndNow(() => closeSync(descriptor))
  copyFileSync(`/proc/self/fd/${descriptor}`, to, constants.COPYFILE_FICLONE)
  changeFileMode(to, 0o644)
  return true
}

function sourceChanged(url: string, key: string, wrong: ObjectDamage): DscError {
  return new DscError(
    'SOURCE_CHANGED',
    `${url}${key}: expected ${wrong.expected}, found ${wrong.found}: the source no longer has the bytes of this version`,
    { hint: 'dsc prepare <dataset> --refresh' },
  )
}
