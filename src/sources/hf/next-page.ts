/** A link in an answer (RFC 8288): `<target>; rel="next"; …`. */
interface Link {
  readonly target: string
  /** Relation names, lower case. */
  readonly relations: readonly string[]
}

const TARGET = /^\s*<([^>]*)>/
const PARAMETER = /^\s*;\s*([^\s=;,]+)\s*(?:=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([^\s;,"]*)))?/

/**
 * The URL of the page after `current`, on the hub at `endpoint`; undefined if `current` was the last. Mirrors and
 * proxies pass on the hub's own address, with another scheme, host or folder: only its path from `/api/` on and its
 * query count, so that no other server is asked or sees the token. Throws a RangeError for a header that cannot be
 * parsed: it may have named a page.
 */
export function findNextPage(
  link: string | undefined,
  { endpoint, current }: { readonly endpoint: string; readonly current: string },
): string | undefined {
  if (link === undefined || link.trim() === '') return undefined
  const next = parseLinks(link).find(({ relations }) => relations.includes('next'))
  if (next === undefined) return undefined
  const url = URL.parse(next.target, current)
  if (url === null) throw notUnderstood(link)
  const { origin, pathname, search } = url
  const apiAt = pathname.indexOf('/api/')
  if (apiAt !== -1) return `${endpoint}${pathname.slice(apiAt)}${search}`
  return origin === new URL(current).origin
    ? `${origin}${pathname}${search}`
    : `${endpoint}${pathname}${search}`
}

function parseLinks(header: string): readonly Link[] {
  const links: Link[] = []
  for (let rest = header; rest.trim() !== ''; rest = rest.replace(/^\s*,/, '')) {
    const [whole, target] = TARGET.exec(rest) ?? []
    if (whole === undefined || target === undefined) throw notUnderstood(header)
    rest = rest.slice(whole.length)
    const relations: string[] = []
    for (let found = PARAMETER.exec(rest); found; found = PARAMETER.exec(rest)) {
      const [parameter, name, double, single, bare] = found
      if (name!.toLowerCase() === 'rel')
        relations.push(...(double ?? single ?? bare ?? '').toLowerCase().split(/\s+/))
      rest = rest.slice(parameter.length)
    }
    links.push({ target, relations })
    if (!/^\s*(,|$)/.test(rest)) throw notUnderstood(header)
  }
  return links
}

function notUnderstood(header: string): RangeError {
  return new RangeError(
    `its link to the next page is not understood: ${JSON.stringify(header.slice(0, 200))}`,
  )
}
