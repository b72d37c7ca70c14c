/** The value that a JSON text says; undefined if it is no JSON. */
export function tryJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
