// Compiles src/ to dist/: every module with tsc, then some of them bundled into one file each, because they are started
// so often that reading their modules one by one would be most of their time (scripts/bench/warm-prepare.mjs).
// What was compiled from a file that is no more is removed first, so that no moved test runs twice.
//   node scripts/build.mjs
import { spawnSync } from 'node:child_process'
import { existsSync, rmSync } from 'node:fs'
import glob from 'fast-glob'
import { makeBundles } from './bundles.mjs'

const LEFT = /\.(d\.ts|js|js\.map)$/

for (const file of glob.sync('dist/**/*.{d.ts,js,js.map}')) {
  const source = file.replace(/^dist/, 'src').replace(LEFT, '')
  if (!existsSync(`${source}.ts`) && !existsSync(`${source}.tsx`)) rmSync(file)
}

const { status } = spawnSync('tsc', ['-p', 'tsconfig.json'], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

await makeBundles('dist')
