import picomatch from 'picomatch'

/** Characters that no extension has. */
const PATTERN = /[*?[{/]/

/** Parses `png,.jpg` into extensions without dots, and `*.{jpg,png},train-*` into patterns. */
export function parseWanted(text: string): readonly string[] {
  const parts = text.match(/(?:\{[^{}]*\}|[^,])+/g) ?? []
  return parts
    .map((each) => each.trim())
    .map((each) => (PATTERN.test(each) ? each : each.replace(/^\./, '')))
    .filter((each) => each !== '')
}

/** Returns whether a path has one of the extensions (without the dot), or matches one of the patterns. */
export function matchWanted(only: readonly string[]): (path: string) => boolean {
  const matchers = only.map((each) =>
    PATTERN.test(each) ? matchGlob(each) : (path: string) => path.endsWith(`.${each}`),
  )
  return (path) => matchers.some((isMatch) => isMatch(path))
}

/** A pattern without `/` matches names in every folder. */
export function matchGlob(glob: string): (path: string) => boolean {
  return picomatch(glob.replace(/^\.\//, ''), { dot: true, nonegate: true, basename: !glob.includes('/') })
}
