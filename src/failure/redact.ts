import { escapeControls } from './escape-controls.js'

/**
 * Removes the parts of a URL that must never reach a log or an error: user name, password, query and fragment (a
 * presigned URL has its secret in the query). Returns text that is not a URL unchanged; from a URL that is invalid, or
 * whose password may contain a `/`, removes everything before its last `@`.
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

/** Node.js appends this to TLS failures: advice for the person who starts it, who is not the user of dsc. */
const ADVICE_OF_NODE = /; if the root CA is installed locally, try running Node\.js with --use-system-ca/g

/**
 * Removes passwords and signatures from the URLs in a sentence, and Node.js's advice, and escapes terminal control
 * characters; returns any other sentence unchanged.
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
