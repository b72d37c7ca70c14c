import type { HubUrl } from '../../../model/source-url.js'

/** A repository as a hub client names it. */
export interface AskedRepository extends Pick<HubUrl, 'kind' | 'repository'> {
  /** Branch, tag or commit. */
  readonly revision: string
}

/** A hub client's request. */
export type HubOperation =
  | { readonly kind: 'info'; readonly of: AskedRepository }
  | {
      readonly kind: 'tree'
      readonly of: AskedRepository
      /** Empty, or ends in `/`. */
      readonly folder: string
      readonly isRecursive: boolean
      /** Path of the last file on the previous page. */
      readonly after: string | undefined
    }
  | { readonly kind: 'paths'; readonly of: AskedRepository }
  | { readonly kind: 'refs'; readonly of: AskedRepository }
  | { readonly kind: 'commits'; readonly of: AskedRepository }
  | { readonly kind: 'file'; readonly of: AskedRepository; readonly path: string }
  /** A hub would answer it, and this one does not. */
  | { readonly kind: 'other' }

const VERBS = ['revision', 'tree', 'paths-info', 'refs', 'commits'] as const

/** First words of the paths of a hub's API, after `/api/`. */
const KINDS: ReadonlySet<string> = new Set(['models', 'datasets', 'spaces'])

/**
 * Parses the target of a request (`/path?query`) as one to a Hugging Face hub; undefined if it is something else.
 * Source: the requests of huggingface_hub 1.x and 2.x (`hf_api.py`, `file_download.py`).
 */
export function parseHubRequest(target: string): HubOperation | undefined {
  const [pathname = '', query = ''] = target.split('?', 2)
  let words: readonly string[]
  try {
    words = pathname.split('/').slice(1).map(decodeURIComponent)
  } catch {
    return undefined
  }
  const parameters = new URLSearchParams(query)
  if (words[0] === 'api') return parseApi(words.slice(1), parameters)
  const kind = words[0] === 'datasets' ? 'datasets' : 'models'
  const rest = kind === 'datasets' ? words.slice(1) : words
  const at = [1, 2].find((place) => rest[place] === 'resolve' || (place === 2 && rest[place] === 'raw'))
  if (at === undefined || rest.length < at + 3) return undefined
  const of = { kind, repository: rest.slice(0, at).join('/'), revision: nameRevision(rest[at + 1]!) } as const
  return { kind: 'file', of, path: rest.slice(at + 2).join('/') }
}

function parseApi(words: readonly string[], parameters: URLSearchParams): HubOperation | undefined {
  const [kind, ...rest] = words
  if (kind === undefined || !KINDS.has(kind)) return undefined
  if (kind !== 'models' && kind !== 'datasets') return { kind: 'other' }
  const at = [1, 2].find((place) => (VERBS as readonly (string | undefined)[]).includes(rest[place]))
  const repository = rest.slice(0, at).join('/')
  if (repository === '' || rest.length < 1) return { kind: 'other' }
  const main = { kind, repository, revision: 'main' } as const
  if (at === undefined) return rest.length > 2 ? { kind: 'other' } : { kind: 'info', of: main }
  if (rest[at] === 'refs') return { kind: 'refs', of: main }
  const revision = rest[at + 1]
  if (!revision) return { kind: 'other' }
  const of: AskedRepository = { kind, repository, revision: nameRevision(revision) }
  switch (rest[at] as Exclude<(typeof VERBS)[number], 'refs'>) {
    case 'commits':
      return { kind: 'commits', of }
    case 'revision':
      return { kind: 'info', of }
    case 'paths-info':
      return { kind: 'paths', of }
    case 'tree': {
      const folder = rest
        .slice(at + 2)
        .join('/')
        .replace(/\/*$/, '/')
      return {
        kind: 'tree',
        of,
        folder: folder === '/' ? '' : folder,
        isRecursive: /^(true|1)$/i.test(parameters.get('recursive') ?? ''),
        after: parameters.get('cursor') ?? undefined,
      }
    }
  }
}

/** Git's name for the commit that is checked out: of a hub, that of the main branch. */
function nameRevision(revision: string): string {
  return revision === 'HEAD' ? 'main' : revision
}
