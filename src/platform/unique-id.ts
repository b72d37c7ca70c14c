/**
 * Makes an identifier that no other process or machine makes: the time, the process, and 104 random bits. It is no
 * secret, and so avoids `node:crypto`, which takes a warm `dsc prepare` several milliseconds to load.
 */
export function createUniqueId(): string {
  const random = () => Math.floor(Math.random() * 2 ** 52).toString(36)
  return `${Date.now().toString(36)}-${process.pid.toString(36)}-${random()}${random()}`
}
