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

// With threads and without a limit, the compiler takes 1.7 GB, too much for a machine with 2 GB.
const { status, signal, error } = spawnSync('tsc', ['-p', 'tsconfig.json', '--singleThreaded'], {
  stdio: 'inherit',
  env: { GOMEMLIMIT: '1000MiB', ...process.env },
})
if (signal !== null) console.error(`tsc was ended by ${signal}: compiling takes 1 GB of memory`)
if (error !== undefined) console.error(`tsc did not start: ${error.message}`)
if (status !== 0) process.exit(status ?? 1)

await makeBundles('dist')
