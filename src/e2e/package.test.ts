import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Manifest {
  readonly exports: Readonly<Record<string, unknown>>
  readonly dependencies: Readonly<Record<string, string>>
}
const manifest: Manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))

/** A program as a user would write it, of every entry that package.json has. */
const PROGRAM = `
import { DscError, openFeed, prepare, status } from 'dsc'
${Object.keys(manifest.exports)
  .filter((entry) => entry !== '.' && entry !== './package.json')
  .map(
    (entry, index) => `import * as entry${index} from 'dsc${entry.slice(1)}'\nentry${index} satisfies object`,
  )
  .join('\n')}

const configPath = 'dsc.yaml'
await using flowers = await prepare('flowers', { configPath, onNote: (sentence) => console.error(sentence) })
const { copies, leases } = await status({ configPath, dataset: 'flowers' })
await using feed = await openFeed({ configPath, dataset: 'flowers', batchSize: 2, seed: 1, cacheFolder: 'samples' })
let fed = 0
for await (const samples of feed) fed += samples.length
const unknown = await prepare('flower', { configPath }).catch((error: unknown) => error)
const code: string | undefined = unknown instanceof DscError ? unknown.code : undefined
await flowers.release()
const held = (await status({ configPath })).leases.length
console.log(JSON.stringify({ path: flowers.path, referenceCount: copies[0]?.referenceCount, leases: leases.length, fed, code, held }))
`

test('a strict NodeNext project type-checks and runs against what npm pack makes', async (context) => {
  const folder = await temporaryDirectory(context)
  const installed = join(folder, 'node_modules/dsc')
  pack(folder, installed)
  for (const name of [...Object.keys(manifest.dependencies), '@types/node', 'undici-types']) {
    link(join(ROOT, 'node_modules', name), join(folder, 'node_modules', name))
  }
  makeFlowers(folder)
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
  const compilerOptions = {
    strict: true,
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    types: ['node'],
    skipLibCheck: false,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['program.ts'] }))

  run(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], folder)
  const printed = run(process.execPath, ['program.js'], folder)

  const { path, ...told } = JSON.parse(printed)
  assert.ok(existsSync(join(path, '0.txt')))
  assert.deepEqual(told, { referenceCount: 1, leases: 1, fed: 4, code: 'DATASET_UNKNOWN', held: 0 })
})

test('what begins with a cold cache runs from bundles, in its threads, too', async (context) => {
  const folder = await temporaryDirectory(context)
  makeFlowers(folder)
  const [hook, told] = [join(folder, 'hook.mjs'), join(folder, 'loaded')]
  writeFileSync(
    hook,
    `import { appendFileSync } from 'node:fs'
    import { registerHooks } from 'node:module'
    const load = (url, context, next) => (appendFileSync(${JSON.stringify(told)}, url + '\\n'), next(url, context))
    registerHooks({ load })`,
  )
  const dsc = (...words: string[]) =>
    run(process.execPath, ['--import', hook, join(ROOT, 'bin/dsc.js'), ...words], folder)
  dsc('prepare', 'flowers')
  dsc('feed', 'bench', 'flowers', '--batch', '2')
  const built = [...readFileSync(told, 'utf8').matchAll(/\/dist\/(.+)/g)].map(([, file]) => file!)
  assert.equal(built.filter((file) => file === 'cold-start.cjs').length, 2)
  // Which threads begin depends on how soon four files are here.
  assert.deepEqual(
    built.filter((file) => !file.endsWith('.cjs')),
    [],
  )
})

test("npm pack takes documents, operators' files and the Python client along, and nothing that only we need", async (context) => {
  const folder = await temporaryDirectory(context)
  const { writeAnswerSchema } = await import(join(ROOT, 'scripts/package/answer-schema.mjs'))
  writeAnswerSchema()
  const paths = pack(folder, join(folder, 'dsc'))
  const needed = [
    'README.md',
    'LICENSE',
    'CHANGELOG.md',
    'bin/dsc.js',
    'docs/reference/configuration.md',
    'docs/reference/dsc-output.schema.json',
    'scripts/slurm/prolog.sh',
    'scripts/slurm/epilog.sh',
    'scripts/slurm/burst_buffer.lua',
    'scripts/kubernetes/base/agents.yaml',
    'scripts/container/Dockerfile',
    'scripts/examples/read-feed.mjs',
    'src/agent/csi/proto/csi.proto',
    'src/agent/page/files/page.js',
    'src/config/dsc.schema.json',
    'src/python/pyproject.toml',
    'src/python/dsc/__init__.py',
  ]
  assert.deepEqual(
    needed.filter((path) => !paths.includes(path)),
    [],
  )
  const ours =
    /\.map$|tsbuildinfo|\.(test|contract)\.|^dist\/(testing|e2e)\/|__pycache__|^scripts\/bench|^fixtures/
  assert.deepEqual(
    paths.filter((path) => ours.test(path)),
    [],
  )
  // What a document links to inside the package is there. npm 9 packs the README.md of src/, too, which is for us.
  for (const page of paths.filter((path) => path.endsWith('.md') && path !== 'src/README.md')) {
    const text = readFileSync(join(folder, 'dsc', page), 'utf8')
    for (const [, target] of text.matchAll(/\]\((?!https?:|#|mailto:)([^)#]+)/g)) {
      const isThere = existsSync(join(folder, 'dsc', dirname(page), target!))
      assert.ok(
        isThere || target!.startsWith('fixtures/'),
        `${page} links to ${target}, which is not in the package`,
      )
    }
  }
})

test('the program that the executable file carries runs from its folder alone', async (context) => {
  const folder = await temporaryDirectory(context)
  const program = join(folder, 'program')
  const { bundleProgram } = await import(join(ROOT, 'scripts/package/bundle.mjs'))
  await bundleProgram(program, `linux-${process.arch}`)
  mkdirSync(join(folder, 'data'))
  writeFileSync(join(folder, 'data/1.txt'), 'sample')
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: ${folder}/record.db\ncache: { root: ${folder}/cache }\nagent: { listen: '127.0.0.1:0', csi: { kubelet: ${folder}/kubelet } }\n`,
  )
  const dsc = (...words: string[]) => run(process.execPath, [join(program, 'bin/dsc.js'), ...words], folder)
  const prepare = ['prepare', `file://${folder}/data/`, '--task', 'test']
  const path = dsc(...prepare).trim()
  assert.equal(readFileSync(join(path, '1.txt'), 'utf8'), 'sample')
  assert.equal(dsc(...prepare).trim(), path)
  assert.match(dsc('feed', 'plan', path, '--batch', '1'), /requests/) // its threads are found
  const agent = spawn(process.execPath, [join(program, 'bin/dsc.js'), 'agent', '--csi'], { cwd: folder })
  context.after(() => agent.kill('SIGKILL'))
  const [said] = await once(agent.stdout, 'data')
  assert.match(String(said), /^kubelet: dsc\.io/m) // so is the protocol
})

/** Packs the checkout as it is built, and unpacks it at `installed`. Gives the paths inside. */
/** Four samples, and a dsc.yaml in which they are the dataset `flowers`. */
function makeFlowers(folder: string): void {
  mkdirSync(join(folder, 'data'))
  for (let index = 0; index < 4; index++)
    writeFileSync(join(folder, 'data', `${index}.txt`), `sample ${index}`)
  const datasets = `{ flowers: { source: file://${folder}/data/ } }`
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: sqlite://${folder}/record.db\ncache: { root: ${folder}/cache }\ndatasets: ${datasets}\n`,
  )
}

function pack(folder: string, installed: string): readonly string[] {
  const printed = run('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], ROOT)
  const [packed] = JSON.parse(printed) as readonly { filename: string; files: readonly { path: string }[] }[]
  mkdirSync(installed, { recursive: true })
  run('tar', ['-xf', join(folder, packed!.filename), '-C', installed, '--strip-components=1'], folder)
  return packed!.files.map(({ path }) => path)
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path)
}

/** Runs a program and gives what it printed; its errors become those of the test. */
function run(program: string, words: readonly string[], cwd: string): string {
  try {
    return execFileSync(program, words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${program} ${words.join(' ')}:\n${stdout}${stderr}`, { cause: error })
  }
}

test('package-lock.json says of what comes compiled that it is not to be compiled', () => {
  // An npm that does not know allowScripts, as those of Node 20, compiles what has a binding.gyp, for which few machines
  // have a compiler and Python, unless the lock file has the package's own `gypfile: false`. `npm install` drops it.
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly gypfile?: boolean }>>
  }
  const compiled = Object.keys(packages).filter((path) => existsSync(join(ROOT, path, 'binding.gyp')))
  assert.deepEqual(compiled, ['node_modules/better-sqlite3'])
  for (const path of compiled)
    assert.equal(packages[path]!.gypfile, false, `${path} in package-lock.json: add "gypfile": false`)
})
