/** Name of a job whose user gave none: two users of one machine do not meet by accident. */
export function nameDefaultJob(): string {
  return `user-${process.getuid?.() ?? 0}`
}
