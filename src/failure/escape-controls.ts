/** C0 except tab and line feed, DEL, C1, line and paragraph separators, and marks that change the direction of text. */
const CONTROL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g
const PLAIN = /^[\n\t\u0020-\u007e]*$/

/**
 * Writes terminal control characters as JSON escapes: object names and texts of servers and tasks are untrusted, and
 * must not move the cursor, change colours or reverse text. JSON stays JSON.
 */
export function escapeControls(text: string): string {
  if (PLAIN.test(text)) return text
  return text.replace(CONTROL, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
