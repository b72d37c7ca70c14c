// Compiles src/ to dist/: every module with tsc, then three of them bundled into one file each, because they are started
// so often that reading their modules one by one would be most of their time (scripts/bench/warm-prepare.mjs).
// What was compiled from a file that is no more is removed first, so that no moved test runs twice.
//   node scripts/build.mjs
import { spawnSync } from 'node:child_process'
import { existsSync, globSync, rmSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'

/** For what runs in no thread and starts none: the module takes 5 ms to load. */
const withoutThreads = {
  name: 'without-threads',
  setup(bundling) {
    bundling.onResolve({ filter: /^node:worker_threads$/ }, () => ({ path: 'none', namespace: 'threads' }))
    bundling.onLoad({ filter: /.*/, namespace: 'threads' }, () => ({
      contents:
        'export const getEnvironmentData = () => undefined; export const setEnvironmentData = () => {}',
    }))
  },
}

/** Takes the modules of better-sqlite3 in, which take 5 ms one by one, and finds its addon where it is installed. */
const withSqlite = {
  name: 'with-sqlite',
  setup(bundling) {
    bundling.onLoad({ filter: /better-sqlite3\/lib\/binding\.js$/ }, async ({ path }) => ({
      contents: `const __installed = require.resolve('better-sqlite3');
        ${(await readFile(path, 'utf8')).replaceAll('__dirname', 'path.dirname(__installed)')}`,
    }))
    bundling.onResolve({ filter: /^better-sqlite3$/ }, ({ kind }) =>
      kind === 'require-resolve' ? { path: 'better-sqlite3', external: true } : undefined,
    )
  },
}

/** Leaves what parses a dsc.yaml that was just edited in a bundle of its own. */
const withoutParser = {
  name: 'without-parser',
  setup(bundling) {
    bundling.onResolve({ filter: /\/parse-settings\.js$/ }, () => ({
      path: './parse-settings.cjs',
      external: true,
    }))
  },
}

/** Name of a bundle in dist/ → how it is made. */
const BUNDLES = {
  'warm-prepare': { entry: 'warm-prepare', plugins: [withoutThreads, withoutParser, withSqlite] },
  'parse-settings': { entry: 'config/parse-settings', minify: true },
  'transfer-worker': { entry: 'transfer-worker', packages: 'bundle' },
}

const LEFT = /\.(d\.ts|js|js\.map)$/

for (const file of globSync('dist/**/*.{d.ts,js,js.map}')) {
  const source = file.replace(/^dist/, 'src').replace(LEFT, '')
  if (!existsSync(`${source}.ts`) && !existsSync(`${source}.tsx`)) rmSync(file)
}

const { status } = spawnSync('tsc', ['-p', 'tsconfig.json'], { stdio: 'inherit' })
if (status !== 0) process.exit(status ?? 1)

await Promise.all(
  Object.entries(BUNDLES).map(([name, { entry, ...settings }]) =>
    build({
      entryPoints: [`dist/${entry}.js`],
      outfile: `dist/${name}.cjs`,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      ...settings,
      logLevel: 'warning',
    }),
  ),
)
