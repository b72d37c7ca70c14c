// A reporter for node --test: prints words for another run of it, one a line, that repeats the tests in which a test was
// skipped: each file, relative to the checkout, and a pattern for each of its outermost tests.
import { relative } from 'node:path'

// biome-ignore lint/style/noDefaultExport: node --test wants a reporter as default export
export default async function* skippedTests(events) {
  const files = new Set() // of those whose outermost test has not ended
  for await (const { type, data } of events) {
    if ((type !== 'test:pass' && type !== 'test:fail') || data.file === undefined) continue
    if (data.skip !== undefined && data.skip !== false) files.add(data.file)
    if (data.nesting > 0 || !files.delete(data.file)) continue
    yield `${relative(process.cwd(), data.file)}\n--test-name-pattern=/^${RegExp.escape(data.name)}$/\n`
  }
}
