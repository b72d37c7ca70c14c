/**
 * Makes an identifier that no other process or machine makes: the time, the process, and 104 random bits. It is
 * no secret, so that `node:crypto`, which costs a warm `dsc prepare` several milliseconds, need not be loaded.
 */
export function createUniqueId(): string {
  const random = () => Math.floor(Math.random() * 2 ** 52).toString(36)
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${random()}${random()}`
}
