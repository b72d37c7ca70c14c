// Numbers as people read them. Times are told from the agent's clock: a browser's may be wrong.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** `1.5 GiB`. */
export function bytes(value) {
  let [number, unit] = [value, 0]
  while (number >= 1024 && unit < UNITS.length - 1) {
    number /= 1024
    unit += 1
  }
  return `${unit === 0 || number >= 100 ? Math.round(number) : number.toFixed(1).replace(/\.0$/, '')} ${UNITS[unit]}`
}

/** `3 min`: the one unit that says most. */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`
  return `${Math.floor(seconds / 86_400)} d`
}

/** How long before `now` (ISO 8601, both) something was; before 1971 it never was. */
export function ago(at, now) {
  return Date.parse(at) < 31_536_000_000 ? 'never' : `${span(Date.parse(now) - Date.parse(at))} ago`
}

/** `43 %`; never 100 before it is all there. */
export function percent(ratio) {
  return `${ratio >= 1 ? 100 : Math.min(99, Math.floor(100 * ratio))} %`
}

/** `1,234`. */
export function count(value) {
  return value.toLocaleString('en-US')
}

/** `2 nodes`. */
export function counted(value, noun, plural = `${noun}s`) {
  return `${count(value)} ${value === 1 ? noun : plural}`
}

/** Date and time of the reader's zone. */
export function moment(at) {
  return new Date(at).toLocaleString('sv-SE')
}
