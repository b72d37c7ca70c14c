import type { HubUrl } from '../../model/source-url.js'

/** Where the hub's API has a repository, from the endpoint on. */
export function apiPath({ kind, repository }: HubUrl): string {
  return `/api/${kind}/${repository}`
}

/** Where the hub shows a repository to people. */
export function pagePath({ kind, repository }: HubUrl): string {
  return kind === 'models' ? `/${repository}` : `/${kind}/${repository}`
}

/** Where the hub has a file of a repository at a revision, percent-encoded. */
export function filePath(url: HubUrl, revision: string, path: string): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  return `${pagePath(url)}/resolve/${encodeURIComponent(revision)}/${encoded}`
}
