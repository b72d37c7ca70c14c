// Makes the folder that the executable file carries: dsc as a few bundled modules, better-sqlite3 with the addon of one
// machine, and the Python client, laid out as in the checkout, so that everything finds its files as it does there.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { build } from 'esbuild'
import { gatherLicences } from './inventory.mjs'
import { readLockedVersion, unpackPackage } from './npm-tarball.mjs'

const ROOT = resolve(import.meta.dirname, '../..')
const DIST = join(ROOT, 'dist')

/** Entries beside main.js: what threads run, found by `new URL(…, import.meta.url)`. */
const THREAD = /new URL\(\s*'(\.{1,2}\/[^']+)',\s*import\.meta\.url,?\s*\)/g

/** Fills `folder` with the program for `target` (linux-x64, linux-arm64). */
export async function bundleProgram(folder, target, updateKey) {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'dist'), { recursive: true })
  const threads = findThreads()
  await build({
    entryPoints: [join(DIST, 'main.js'), ...threads],
    outdir: join(folder, 'dist'),
    entryNames: '[name]',
    chunkNames: 'chunk-[hash]',
    bundle: true,
    splitting: true,
    minify: true,
    keepNames: true, // errors are told by their names
    platform: 'node',
    target: 'node24',
    format: 'esm',
    mainFields: ['module', 'main'], // modules can be shaken, and names of CommonJS get lost between chunks
    external: ['better-sqlite3', 'pg-native', 'react-devtools-core'],
    banner: {
      js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
    },
    define: { 'process.env.NODE_ENV': '"production"' },
    plugins: [flatUrls],
    logLevel: 'warning',
    logOverride: { 'assign-to-define': 'silent' },
  })
  for (const bundle of globSync('dist/*.cjs', { cwd: ROOT })) copy(bundle, folder)
  for (const path of ['bin/dsc.js', 'bin/package.json', 'LICENSE']) copy(path, folder)
  const python = globSync('src/python/dsc/**/*', { cwd: ROOT, withFileTypes: true })
  for (const entry of python) {
    if (!entry.isFile() || entry.name.endsWith('.pyc')) continue
    copy(relative(ROOT, join(entry.parentPath, entry.name)), folder)
  }
  for (const path of globSync(['src/agent/page/files/*', 'src/agent/csi/proto/*'], { cwd: ROOT }))
    copy(path, folder)
  copyAddon(folder, target)
  addKernelCalls(folder, target)
  writeFileSync(join(folder, 'THIRD-PARTY-LICENSES.txt'), gatherLicences())
  const { name, version, type, engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  writeFileSync(
    join(folder, 'package.json'),
    `${JSON.stringify({ name, version, type, engines, updateKey })}\n`,
  )
}

function copy(path, folder) {
  cpSync(join(ROOT, path), join(folder, path))
}

/** The files of better-sqlite3 that Node needs; its sources and the addons of other machines stay behind. */
function copyAddon(folder, target) {
  const from = join(ROOT, 'node_modules/better-sqlite3')
  const to = join(folder, 'node_modules/better-sqlite3')
  for (const path of ['LICENSE', 'package.json', 'lib', `prebuilds/${target}.node`]) {
    cpSync(join(from, path), join(to, path), { recursive: true })
  }
}

/** What asks the kernel who connects: one prebuilt addon, for the C library that Node is linked with. */
function addKernelCalls(folder, target) {
  const name = `@koromix/koffi-${target}`
  const installed = join(ROOT, 'node_modules', name)
  const to = join(folder, 'node_modules', name)
  if (existsSync(installed)) cpSync(installed, to, { recursive: true })
  else unpackPackage(`${name}@${readLockedVersion(name)}`, to)
  rmSync(join(to, target.replace('linux-', 'musl_')), { recursive: true })
}

/** Product modules that are started as threads of their own. */
function findThreads() {
  const threads = new Set()
  for (const file of globSync('**/*.js', { cwd: DIST })) {
    if (/\.test\.|^(testing|e2e)\//.test(file)) continue
    for (const [, specifier] of readFileSync(join(DIST, file), 'utf8').matchAll(THREAD)) {
      if (specifier.endsWith('.js')) threads.add(join(DIST, dirname(file), specifier))
    }
  }
  return [...threads].sort()
}

/** All modules of the bundle lie in one folder: what lay relative to their sources is found relative to it. */
const flatUrls = {
  name: 'flat-urls',
  setup(builder) {
    builder.onLoad({ filter: /\.js$/ }, ({ path }) => {
      if (!path.startsWith(DIST + sep)) return undefined
      const contents = readFileSync(path, 'utf8').replace(THREAD, (_, specifier) => {
        const target = join(dirname(path), specifier)
        const flat = target.startsWith(DIST + sep) ? `./${basename(target)}` : relative(DIST, target)
        return `new URL('${flat}', import.meta.url)`
      })
      return { contents, loader: 'js' }
    })
  },
}
