import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** A fenced block of a document. */
export interface DocumentBlock {
  /** `docs/guides/feed.md:36`, the line of the fence. */
  readonly place: string
  /** The fence's language: `sh`, `ts` …; empty for blocks to look at, not to use: screens, outlines. */
  readonly language: string
  readonly text: string
  /** From `<!-- not run: … -->` on the line above: why no test can use the block unchanged. */
  readonly notRun: string | undefined
  /** From `<!-- given: … -->` on the line above: code to run before the block, in its language. */
  readonly given: string
}

/** The README and every page of docs/, except generated benchmark reports. */
export function listDocuments(root: string): readonly string[] {
  return ['README.md', 'CONTRIBUTING.md', 'src/README.md', ...globSync('docs/**/*.md', { cwd: root })]
    .filter((path) => globSync(path, { cwd: root }).length > 0 && !path.startsWith('docs/benchmarks/'))
    .sort()
}

/** Every fenced block of the documents at `root`. */
export function readBlocks(root: string): readonly DocumentBlock[] {
  return listDocuments(root).flatMap((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return [
      ...text.matchAll(/(?:<!-- (not run|given):\s([\s\S]*?)\s-->\n)?^```(\w*)\n([\s\S]*?)^```$/gm),
    ].map(([whole, mark, words, language, block]) => ({
      place: `${path}:${text.slice(0, text.indexOf(whole)).split('\n').length + (mark ? words!.split('\n').length : 0)}`,
      language: language!,
      text: block!,
      notRun: mark === 'not run' ? words : undefined,
      given: mark === 'given' ? words! : '',
    }))
  })
}
