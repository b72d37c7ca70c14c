// The bundles of dist/: modules that are started so often that reading them one by one would be most of their time
// (scripts/bench/warm-prepare.mjs), each of them in one file.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { build } from 'esbuild'

/** For what runs in no thread and starts none: the module takes 5 ms to load. */
const withoutThreads = {
  name: 'without-threads',
  setup(bundling) {
    bundling.onResolve({ filter: /^node:worker_threads$/ }, () => ({ path: 'none', namespace: 'threads' }))
    bundling.onLoad({ filter: /.*/, namespace: 'threads' }, () => ({
      contents:
        'export const isMainThread = true; export const getEnvironmentData = () => undefined; export const setEnvironmentData = () => {}',
    }))
  },
}

/** For what leaves every failure to another program, which meets it again: the table of failures is a fifth of the bundle. */
const withoutFailures = {
  name: 'without-failures',
  setup(bundling) {
    bundling.onLoad({ filter: /\/failure\/dsc-error\.js$/ }, () => ({
      contents: 'export class DscError extends Error {}',
    }))
  },
}

/**
 * Takes the modules of better-sqlite3 in, which take 5 ms one by one, and looks for its addon first where npm and the
 * executable put it: Node's own search takes 3 ms.
 */
const withSqlite = {
  name: 'with-sqlite',
  setup(bundling) {
    bundling.onLoad({ filter: /better-sqlite3\/lib\/binding\.js$/ }, async ({ path }) => ({
      contents: `const { existsSync } = require('fs');
        const { dirname, join } = require('path');
        const __places = ['../node_modules/better-sqlite3/lib', '../../better-sqlite3/lib'].map((place) => join(__dirname, place));
        const __lib = __places.find(existsSync) ?? dirname(require.resolve('better-sqlite3'));
        ${(await readFile(path, 'utf8')).replaceAll('__dirname', '__lib')}`,
    }))
    bundling.onResolve({ filter: /^better-sqlite3$/ }, ({ kind }) =>
      kind === 'require-resolve' ? { path: 'better-sqlite3', external: true } : undefined,
    )
  },
}

/** Takes Node's own SQLite, which needs no addon, or better-sqlite3 where Node warns that its own is experimental. */
const withBuiltInSqlite = (dist) => ({
  name: 'with-built-in-sqlite',
  setup(bundling) {
    bundling.onResolve({ filter: /^better-sqlite3$/ }, ({ kind }) =>
      kind === 'import-statement' ? { path: 'either', namespace: 'sqlite' } : undefined,
    )
    bundling.onLoad({ filter: /.*/, namespace: 'sqlite' }, () => ({
      resolveDir: resolve(dist),
      contents: `const [major, minor] = process.versions.node.split('.').map(Number)
        const warns = major < 24 || (major === 24 && minor < 15) || (major === 25 && minor < 7)
        module.exports = !warns
        ? require('./records/sqlite/built-in-sqlite.js').BuiltInDatabase
        : require('better-sqlite3')`,
    }))
  },
})

/** Leaves what few calls need in bundles of their own: the whole text of a bundle is read each time. */
const withoutRareParts = {
  name: 'without-rare-parts',
  setup(bundling) {
    for (const [file, bundle] of [
      ['/parse-settings.js', 'parse-settings'],
      ['/postgres/record-store.js', 'warm-postgres'],
      ['/sqlite/record-store.js', 'warm-sqlite'],
    ]) {
      const filter = new RegExp(`${file.replace('.', '\\.')}$`)
      bundling.onResolve({ filter }, () => ({ path: `./${bundle}.cjs`, external: true }))
    }
  },
}

/** Keeps all verbs out but those that begin with a cold cache: the others' modules are never asked for. */
const withoutOtherVerbs = {
  name: 'without-other-verbs',
  setup(bundling) {
    bundling.onResolve({ filter: /\/commands\/[^/]+\.js$/ }, ({ path }) =>
      /\/(prepare|feed)\.js$/.test(path) ? undefined : { path, external: true },
    )
  },
}

/** Has a module find the files beside it where it was compiled to, not beside the bundle. */
const withOwnUrls = (dist) => ({
  name: 'with-own-urls',
  setup(bundling) {
    bundling.onLoad({ filter: /\/dist\/.*\.js$/ }, async ({ path }) => {
      const place = JSON.stringify(relative(resolve(dist), path))
      const contents = await readFile(path, 'utf8')
      const url = `require('node:url').pathToFileURL(require('node:path').join(__dirname, ${place})).href`
      return { contents: contents.replaceAll('import.meta.url', url) }
    })
  },
})

/** Name of a bundle in dist/ → how it is made. */
const BUNDLES = {
  'warm-door': { entry: 'warm-door', plugins: [withoutFailures] },
  'warm-prepare': { entry: 'warm-prepare', plugins: [withoutThreads, withoutRareParts] },
  'warm-sqlite': {
    entry: 'records/sqlite/record-store',
    plugins: [withoutThreads, withBuiltInSqlite, withSqlite],
  },
  'warm-postgres': {
    entry: 'records/postgres/record-store',
    plugins: [withoutThreads],
    external: ['pg-native'],
  },
  'parse-settings': { entry: 'config/parse-settings' },
  'cold-start': {
    entry: 'main',
    plugins: [withoutOtherVerbs, withOwnUrls, withSqlite],
    external: ['pg-native'],
    keepNames: true, // errors are told by their names
  },
  'reader-thread': { entry: 'feed/threads/reader-thread', keepNames: true },
  'rows-thread': { entry: 'samples/rows/rows-thread', keepNames: true },
  'storage-thread': { entry: 'feed/storage/storage-thread', keepNames: true },
  'tar-index-thread': { entry: 'samples/formats/tar-index-thread', keepNames: true },
  'transfer-worker': { entry: 'transfer-worker', packages: 'bundle', minify: false },
}

/**
 * Bundles what lies compiled in the folder `dist`: all, or those of these names.
 * @returns {Promise<Map<string, readonly string[]>>} name of a bundle → paths below `dist` that are in it
 */
export async function makeBundles(dist, names = Object.keys(BUNDLES)) {
  const made = names.map(async (name) => {
    const { entry, plugins = [], ...settings } = BUNDLES[name]
    const { metafile, outputFiles } = await build({
      write: false,
      entryPoints: [join(dist, `${entry}.js`)],
      outfile: join(dist, `${name}.cjs`),
      bundle: true,
      platform: 'node',
      format: 'cjs',
      minify: true,
      metafile: true,
      supported: { 'dynamic-import': false }, // Node's loader of ES modules takes longer than `require`
      ...settings,
      plugins: plugins.map((plugin) => (typeof plugin === 'function' ? plugin(dist) : plugin)),
      logLevel: 'warning',
    })
    for (const { path, contents } of outputFiles) replaceFile(path, contents)
    const inputs = Object.keys(metafile.inputs).map((path) => relative(dist, resolve(path)))
    return [name, inputs.filter((path) => !path.startsWith('..'))]
  })
  return new Map(await Promise.all(made))
}

/** Leaves a file alone that stays the same, and changes another one at once: a test beside may be reading it. */
function replaceFile(path, contents) {
  if (existsSync(path) && readFileSync(path).equals(contents)) return
  const part = `${path}.${process.pid}`
  writeFileSync(part, contents)
  renameSync(part, path)
}
