// Compiles src/ to dist/: every module with tsc, then two of them bundled into one file each, because they are started
// so often that reading their modules one by one would be most of their time (scripts/bench/warm-prepare.mjs).
// What was compiled from a file that is no more is removed first, so that no moved test runs twice.
//   node scripts/build.mjs
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, rmSync } from 'node:fs'
import { build } from 'esbuild'

/** Entry → what stays outside its bundle: `warm-prepare` loads better-sqlite3, which is compiled. */
const BUNDLES = {
  'dist/warm-prepare': { packages: 'external' },
  'dist/transfer-worker': { packages: 'bundle' },
}

const LEFT = /\.(d\.ts|js|js\.map)$/

for (const file of globSync('dist/**/*.{d.ts,js,js.map}')) {
  const source = file.replace(/^dist/, 'src').replace(LEFT, '')
  if (!existsSync(`${source}.ts`) && !existsSync(`${source}.tsx`)) rmSync(file)
}

const { status } = spawnSync('tsc', ['-p', 'tsconfig.json'], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

await Promise.all(
  Object.entries(BUNDLES).map(([entry, { packages }]) =>
    build({
      entryPoints: [`${entry}.js`],
      outfile: `${entry}.cjs`,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      packages,
      logLevel: 'warning',
    }),
  ),
)
