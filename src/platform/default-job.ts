/**
 * Default job name for unnamed jobs: separate per user, so that two users of one machine do not collide by accident.
 */
export function nameDefaultJob(): string {
  return `user-${process.getuid?.() ?? 0}`
}
