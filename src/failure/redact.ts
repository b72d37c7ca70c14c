import { escapeControls } from './escape-controls.js'

/**
 * Removes what must never reach a log or an error from a URL: user name, password, query and fragment
 * (a presigned URL carries its secret in the query). Text that is not a URL comes back unchanged; one that cannot be
 * read, or in which a password may have been written with a `/`, loses all that stands before its last `@`.
 */
export function redactUrl(text: string): string {
  const [, scheme, rest = ''] = /^([a-z][a-z0-9+.-]*:\/\/)(.*)$/is.exec(text) ?? []
  if (scheme === undefined) return text
  const isAmbiguous = /^[^/?#@]*:[^@]*[/?#].*@/s.test(rest)
  const url = isAmbiguous || !URL.canParse(text) ? undefined : new URL(text)
  if (url === undefined) return scheme + rest.slice(rest.lastIndexOf('@') + 1).replace(/[?#].*$/s, '')
  url.username = ''
  url.password = ''
  url.search = ''
  url.hash = ''
  return url.toString()
}

/** What Node.js adds to failures of TLS: advice for who starts it, which is not who runs dsc. */
const ADVICE_OF_NODE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/g

/**
 * Removes passwords and signatures from the URLs in a sentence, and the advice of Node.js, and escapes what a terminal
 * would obey; what holds none stays as it was written.
 */
export function redactText(sentence: string): string {
  const safe = escapeControls(sentence)
  const text = safe.includes('--use-system-ca') ? safe.replace(ADVICE_OF_NODE, '') : safe
  if (!text.includes('://')) return text
  return text
    .replace(/:\/\/[^\s'"`]*:[^\s'"`]*@/g, '://')
    .replace(
      /([?&](?:[a-z-]*password|[a-z-]*token|[a-z-]*secret|x-amz-[a-z-]+|signature|sig)=)[^&\s'"`]+/gi,
      '$1***',
    )
}
