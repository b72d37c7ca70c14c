import type { HubUrl } from '../../model/source-url.js'

/** Path of a repository in the hub's API, relative to the endpoint. */
export function apiPath({ kind, repository }: HubUrl): string {
  return `/api/${kind}/${repository}`
}

/** Path of a repository's web page. */
export function pagePath({ kind, repository }: HubUrl): string {
  return kind === 'models' ? `/${repository}` : `/${kind}/${repository}`
}

/** Path of a file of a repository at a revision, percent-encoded. */
export function filePath(url: HubUrl, revision: string, path: string): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/')
  return `${pagePath(url)}/resolve/${encodeURIComponent(revision)}/${encoded}`
}
