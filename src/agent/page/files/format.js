// Numbers and times as people read them. Ages are measured by the agent's clock: a browser's may be wrong.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']
const DAY_MS = 86_400_000

/** Three digits, as every command of dsc prints them: `9.58 MiB`, `95.8 MiB`, `958 MiB`. */
export function bytes(value) {
  let [number, unit] = [value, 0]
  // 1023.5 would print as 1024: the next unit is shorter.
  while (number >= 1023.5 && unit < UNITS.length - 1) {
    number /= 1024
    unit += 1
  }
  const digits = unit === 0 || number >= 99.95 ? 0 : number >= 9.995 ? 1 : 2
  const text = number.toFixed(digits)
  return `${digits > 0 ? text.replace(/\.?0+$/, '') : text} ${UNITS[unit]}`
}

/** `6 min 50 s`, `2 h 52 min`, `3 d 4 h`: the two units that say most. */
export function span(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const two = (big, unit, small, rest) => `${big} ${unit}${rest > 0 ? ` ${rest} ${small}` : ''}`
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return two(minutes, 'min', 's', minutes < 10 ? seconds % 60 : 0)
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return two(hours, 'h', 'min', hours < 10 ? minutes % 60 : 0)
  const days = Math.floor(hours / 24)
  return two(days, 'd', 'h', days < 10 ? hours % 24 : 0)
}

/** `3 min`: the first unit of `span`. */
export function shortSpan(ms) {
  return span(ms).split(' ').slice(0, 2).join(' ')
}

/** How long before `now` (ISO 8601, both) something was; before 1971 it never was. */
export function ago(at, now) {
  if (Date.parse(at) < 31_536_000_000) return 'never'
  const ms = Date.parse(now) - Date.parse(at)
  return ms < 1000 ? 'now' : `${shortSpan(ms)} ago`
}

/** `43 %`; never 100 before it is whole. */
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

const format = (options) => new Intl.DateTimeFormat('en-GB', { hourCycle: 'h23', ...options })
const CLOCK = format({ hour: '2-digit', minute: '2-digit' })
const SECONDS = format({ hour: '2-digit', minute: '2-digit', second: '2-digit' })
const WEEKDAY = format({ weekday: 'short' })
const DATE = format({ day: 'numeric', month: 'short' })
const YEAR = format({ day: 'numeric', month: 'short', year: 'numeric' })
const ZONE = format({ timeZoneName: 'short' })

/** `14:21`, in the reader's time zone. */
export function clock(at) {
  return CLOCK.format(new Date(at))
}

/** `14:21:07`. */
export function clockSeconds(at) {
  return SECONDS.format(new Date(at))
}

/** `Tue 24 Nov`. */
export function date(at) {
  return `${WEEKDAY.format(new Date(at))} ${DATE.format(new Date(at))}`
}

/** The reader's time zone, as in `CET`. */
export function zone(at) {
  return ZONE.formatToParts(new Date(at)).find(({ type }) => type === 'timeZoneName').value
}

/** `14:21` today, `Sun 14:21` this week, else `24 Nov 14:21`. */
export function moment(at, now) {
  const [then, present] = [new Date(at), new Date(now)]
  if (then.toDateString() === present.toDateString()) return clock(then)
  const awayMs = Math.abs(present - then)
  if (awayMs < 6 * DAY_MS) return `${WEEKDAY.format(then)} ${clock(then)}`
  return `${(awayMs < 300 * DAY_MS ? DATE : YEAR).format(then)} ${clock(then)}`
}
