/**
 * Removes what must never reach a log or an error from a URL: user name, password, query and fragment
 * (a presigned URL carries its secret in the query). Text that is not a URL comes back unchanged.
 */
export function redactUrl(text: string): string {
  let url: URL
  try {
    url = new URL(text)
  } catch {
    return text
  }
  url.username = ''
  url.password = ''
  url.search = ''
  url.hash = ''
  return url.toString()
}
