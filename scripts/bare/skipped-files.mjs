// A reporter for node --test: names each file in which a test was skipped, one a line, relative to the checkout.
import { relative } from 'node:path'

// biome-ignore lint/style/noDefaultExport: node --test wants a reporter as default export
export default async function* skippedFiles(events) {
  const named = new Set()
  for await (const { type, data } of events) {
    const skipped =
      (type === 'test:pass' || type === 'test:fail') && data.skip !== undefined && data.skip !== false
    if (!skipped || data.file === undefined || named.has(data.file)) continue
    named.add(data.file)
    yield `${relative(process.cwd(), data.file)}\n`
  }
}
