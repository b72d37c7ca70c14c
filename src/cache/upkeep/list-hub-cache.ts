import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { formatSourceUrl, parseHubFolder } from '../../model/source-url.js'

/** A repository that the hub's own clients have downloaded. */
export interface DownloadedRepository {
  /** `hf://…` at the revision that the clients asked for, else at the commit. */
  readonly source: string
  /** The commit that they have. */
  readonly commit: string
  /** The source at that commit, wherever the hub's branches and tags point by now. */
  readonly pinnedSource: string
  /** The clients' cache that contains it, as HF_HUB_CACHE names it. */
  readonly hubCache: string
  /** Folder of the repository in that cache. */
  readonly directory: string
}

const COMMIT = /^[0-9a-f]{40}$/
/** Name that huggingface_hub 2.x gives a ref until it is complete. */
const UNFINISHED_REF = /\.[0-9a-f]{8}\.tmp$/

/**
 * Lists the repositories in a cache of the hub's own clients, or the one repository whose folder this is: each at every
 * revision that was asked for by name, and at commits that no name leads to. Undefined: the folder is neither.
 */
export function listHubCache(folder: string): readonly DownloadedRepository[] | undefined {
  if (isRepository(folder)) return listRevisions(folder)
  let repositories: readonly string[]
  try {
    repositories = readdirSync(folder)
      .map((name) => join(folder, name))
      .filter(isRepository)
  } catch {
    return undefined // adopting it as a plain folder reports the problem
  }
  return repositories.length === 0 ? undefined : repositories.flatMap(listRevisions)
}

function isRepository(folder: string): boolean {
  const isNamed = parseHubFolder(basename(folder)) !== undefined
  return isNamed && (statSync(join(folder, 'snapshots'), { throwIfNoEntry: false })?.isDirectory() ?? false)
}

/** Ignores a ref whose snapshot is gone. */
function listRevisions(folder: string): readonly DownloadedRepository[] {
  const named = parseHubFolder(basename(folder))!
  const commits = new Set(readdirSync(join(folder, 'snapshots')).filter((name) => COMMIT.test(name)))
  const refs = readRefs(join(folder, 'refs')).filter(({ commit }) => commits.has(commit))
  for (const { commit } of refs) commits.delete(commit)
  const nameless = [...commits].toSorted().map((commit) => ({ revision: commit, commit }))
  const sourceAt = (revision: string) =>
    formatSourceUrl({ scheme: 'hf', ...named, revision, folder: '' }).replace(/\/$/, '')
  return [...refs, ...nameless].map(({ revision, commit }) => ({
    source: sourceAt(revision),
    commit,
    pinnedSource: sourceAt(commit),
    hubCache: dirname(folder),
    directory: folder,
  }))
}

/**
 * Each revision (its name may contain slashes) with its commit, sorted. A ref without a commit was never read by that
 * name: a link that leads nowhere, or a file that a client was writing when it was killed.
 */
function readRefs(folder: string): readonly { readonly revision: string; readonly commit: string }[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => !UNFINISHED_REF.test(name))
    .toSorted()
    .flatMap((revision) => {
      const path = join(folder, revision)
      if (!statSync(path, { throwIfNoEntry: false })?.isFile()) return []
      const commit = readFileSync(path, 'utf8').trim()
      return COMMIT.test(commit) ? [{ revision, commit }] : []
    })
}
