import picomatch from 'picomatch'
import { DscError } from '../../failure/dsc-error.js'

/**
 * Returns a function that tells which keys belong to a dataset: those that match an include (or there are no includes)
 * and no exclude. Globs see the key relative to the prefix. A glob without `/` matches names in every folder, as in the
 * AWS CLI and `hf`. In a glob with `/`, `*` stops at `/` and `**` does not. Dot files count. A pattern equal to the key
 * always matches it, so any key can be excluded by name.
 */
export function createKeyMatcher(filters: {
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}): (key: string) => boolean {
  const isIncluded = filters.include.length === 0 ? () => true : createMatcher(filters.include)
  const isExcluded = createMatcher(filters.exclude)
  return (key) => isIncluded(key) && !isExcluded(key)
}

function createMatcher(globs: readonly string[]): (key: string) => boolean {
  const literals = new Set(globs)
  const tests = globs.map((glob) => {
    if (glob === '')
      throw new DscError('CONFIG_INVALID', 'an include or exclude glob is empty', {
        hint: "use '**' for every object, or leave the list out",
      })
    return picomatch(glob, { dot: true, nonegate: true, windows: false, basename: !glob.includes('/') })
  })
  return (key) => literals.has(key) || tests.some((test) => test(key))
}
