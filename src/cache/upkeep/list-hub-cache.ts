import { readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { formatSourceUrl, parseHubFolder } from '../../model/source-url.js'

/** A repository that the hub's own clients have downloaded. */
export interface DownloadedRepository {
  /** `hf://…` at the revision that they asked for, else at the commit. */
  readonly source: string
  /** The clients' cache that it lies in, for HF_HUB_CACHE. */
  readonly hubCache: string
}

const COMMIT = /^[0-9a-f]{40}$/

/**
 * The repositories in a cache of the hub's own clients, or the one whose folder this is, each at every revision that was
 * asked for by name, and at commits that no name leads to. Undefined: the folder is neither.
 */
export function listHubCache(folder: string): readonly DownloadedRepository[] | undefined {
  if (isRepository(folder)) return listRevisions(folder)
  let repositories: readonly string[]
  try {
    repositories = readdirSync(folder)
      .map((name) => join(folder, name))
      .filter(isRepository)
  } catch {
    return undefined // whoever adopts it as it is says what is wrong
  }
  return repositories.length === 0 ? undefined : repositories.flatMap(listRevisions)
}

function isRepository(folder: string): boolean {
  const isNamed = parseHubFolder(basename(folder)) !== undefined
  return isNamed && (statSync(join(folder, 'snapshots'), { throwIfNoEntry: false })?.isDirectory() ?? false)
}

function listRevisions(folder: string): readonly DownloadedRepository[] {
  const named = parseHubFolder(basename(folder))!
  const refs = join(folder, 'refs')
  const revisions = listFiles(refs)
  const known = new Set(revisions.map((name) => readFileSync(join(refs, name), 'utf8').trim()))
  const commits = readdirSync(join(folder, 'snapshots')).filter(
    (name) => COMMIT.test(name) && !known.has(name),
  )
  return [...revisions, ...commits].map((revision) => ({
    source: formatSourceUrl({ scheme: 'hf', ...named, revision, folder: '' }).replace(/\/$/, ''),
    hubCache: dirname(folder),
  }))
}

/** Names of files below a folder: a revision's may have slashes. */
function listFiles(folder: string): readonly string[] {
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return []
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(join(folder, name)).isFile())
    .toSorted()
}
