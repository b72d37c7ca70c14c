import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type DocumentBlock, listDocuments, readBlocks } from '../testing/document-blocks.js'
import { needs } from '../testing/needs.js'
import { temporaryDirectory } from '../testing/temporary-directory.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const NAMES = ['flowers', 'imagenet', 'labels', 'birds']

const RUNNERS: Readonly<Record<string, (context: TestContext, block: DocumentBlock) => Promise<void>>> = {
  console: runShell,
  sh: runShell,
  bash: runShell,
  yaml: readAsConfiguration,
  ts: typeCheck,
  python: compilePython,
}

/** Programs of the blocks that not every Debian has, each as their commands name it, and its package. */
const PROGRAMS = [
  [/\bjq\b/, 'jq', 'jq'],
  [/\bpython3?\b/, 'python3', 'python3'],
] as const

function findMissing({ language, text, given }: DocumentBlock): string | false {
  if (language === 'python') return needs('python3', 'python3')
  if (RUNNERS[language] !== runShell) return false
  for (const [name, program, debianPackage] of PROGRAMS) {
    const reason = name.test(given + text) && needs(program, debianPackage)
    if (reason) return reason
  }
  return false
}

for (const block of readBlocks(ROOT)) {
  if (block.language === '') continue // a picture
  const run = RUNNERS[block.language]
  test(`${block.place} works as it is written`, {
    skip: block.notRun ?? findMissing(block),
  }, async (context) => {
    assert.ok(
      run,
      `no test can run ${block.language}: add a runner, or <!-- not run: why --> above the block`,
    )
    await run(context, block)
  })
}

test('a block that is not run says why, and the tests it names exist', () => {
  const tests = globSync('{src,scripts}/**/*.test.{ts,py}', { cwd: ROOT }).map((path) => basename(path))
  for (const { place, notRun } of readBlocks(ROOT)) {
    assert.notEqual(notRun, '', place)
    for (const [name] of notRun?.matchAll(/[\w-]+\.test\.ts/g) ?? [])
      assert.ok(tests.includes(name), `${place}: ${name}`)
  }
})

test('every path that CONTRIBUTING.md and src/README.md name is there, and every room has its place on the map', () => {
  for (const [page, folder] of [
    ['CONTRIBUTING.md', ''],
    ['src/README.md', 'src'],
  ] as const) {
    const named = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/`([\w./-]+)`/g)]
      .map(([, path]) => path!)
      .filter((path) => path.includes('/') && !path.startsWith('dist'))
    assert.deepEqual(
      named.filter((path) => !existsSync(join(ROOT, folder, path))),
      [],
      page,
    )
  }
  const map = readFileSync(join(ROOT, 'src/README.md'), 'utf8')
  const rooms = globSync('{*,cache/*,feed/*}/', { cwd: join(ROOT, 'src') })
  assert.deepEqual(
    rooms.map((room) => room.replace(/\/$/, '')).filter((room) => !new RegExp(`\`${room}/`).test(map)),
    [],
  )
})

test('the pages of docs/reference are what the program says (renew them with `npm run docs`)', () => {
  execute(process.execPath, [join(ROOT, 'scripts/docs/reference.mjs'), '--check'], ROOT)
})

test('docs/reference/configuration.md has every variable that dsc and its scripts know', () => {
  const page = readFileSync(join(ROOT, 'docs/reference/configuration.md'), 'utf8')
  const files = globSync('{src,scripts/slurm}/**/*.{ts,py,sh,lua}', { cwd: ROOT }).filter(
    (path) => !/\.test\.|^src\/(testing|e2e|python\/tests)\//.test(path),
  )
  const named = files.flatMap(
    (path) => readFileSync(join(ROOT, path), 'utf8').match(/\bDSC_[A-Z_]*[A-Z]\b/g) ?? [],
  )
  const ours = /^DSC_(TEST_.*|FEED_DEBUG|DATASET_LABELS|MOUNTER)$/
  assert.deepEqual(
    [...new Set(named)].filter((name) => !ours.test(name) && !page.includes(`\`${name}\``)),
    [],
  )
})

test('no paragraph of the README, of Start, Guides or Understand is longer than six lines', () => {
  for (const page of ['README.md', ...globSync('docs/{start,guides,understand}/*.md', { cwd: ROOT })]) {
    const prose = readFileSync(join(ROOT, page), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')
    for (const paragraph of prose.split(/\n\n|\n(?=[-|]|\d\. )/)) {
      if (/^(\||<!--)/.test(paragraph.trim())) continue
      const lines = paragraph.split('\n').filter((line) => !line.startsWith('#'))
      assert.ok(lines.length <= 6 && lines.every((line) => line.length <= 120), `${page}: ${paragraph}`)
    }
  }
})

test('every page of Start, Guides, Understand and Reference is in the menu of the site', async () => {
  const { site } = await import(join(ROOT, 'scripts/docs/site-config.mjs'))
  const links = site.themeConfig.sidebar.flatMap(({ items }: { items: { link: string }[] }) =>
    items.map(({ link }) => `docs${link}.md`),
  )
  const pages = globSync('docs/{start,guides,understand,reference}/*.md', { cwd: ROOT })
  assert.deepEqual(links.filter((link: string) => link !== 'docs/benchmarks.md').sort(), pages.sort())
})

test('every link inside the documents leads somewhere', () => {
  const dead = listDocuments(ROOT).flatMap((page) =>
    [...readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\((?!https?:|mailto:)([^)]*)\)/g)]
      .map(([, target]) => target!)
      .filter((target) => !isThere(page, target))
      .map((target) => `${page}: ${target}`),
  )
  assert.deepEqual(dead, [])
})

function isThere(page: string, target: string): boolean {
  const [path, anchor] = target.split('#')
  const file = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path!)
  if (!existsSync(file)) return false
  if (anchor === undefined) return true
  const headings = [...readFileSync(file, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
  return headings.includes(anchor)
}

/** Runs the commands of a block in bash, on a machine that knows the datasets of NAMES; each must succeed. */
async function runShell(context: TestContext, block: DocumentBlock): Promise<void> {
  const folder = await temporaryDirectory(context)
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeProgram(join(bin, 'dsc'), `exec "${process.execPath}" "${join(ROOT, 'bin/dsc.js')}" "$@"`)
  writeProgram(join(bin, 'python'), 'exec python3 "$@"')
  writeFileSync(
    join(folder, 'train.py'),
    'import os\nassert os.environ.get("DSC_DATASET", "/").startswith("/")\n',
  )
  for (const name of NAMES) {
    mkdirSync(join(folder, 'data', name), { recursive: true })
    for (let index = 0; index < 20; index++) {
      writeFileSync(join(folder, 'data', name, `${index}.jpg`), `${name} ${index}`)
    }
  }
  const datasets = NAMES.map((name) => `  ${name}: { source: ${join(folder, 'data', name)} }`).join('\n')
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `node: this-machine\nrecord: ${join(folder, 'record.db')}\ncache: { root: ${join(folder, 'cache')}, maxPercent: 99 }\ndatasets:\n${datasets}\n`,
  )
  const commands =
    block.language === 'console'
      ? [...block.text.matchAll(/^\$ (.*(?:\\\n.*)*)$/gm)].map(([, command]) => command!).join('\n')
      : block.text
  const script = `set -eo pipefail\n${block.given.replaceAll('$ROOT', `'${ROOT}'`)}\n${commands}`
  execute('bash', ['-c', script], folder, {
    ...process.env,
    HOME: folder,
    XDG_CACHE_HOME: join(folder, 'xdg'),
    PATH: `${bin}:${process.env.PATH}`,
    DSC_CONFIG: join(folder, 'dsc.yaml'),
  })
}

/** The block is a whole dsc.yaml that dsc accepts. */
async function readAsConfiguration(context: TestContext, block: DocumentBlock): Promise<void> {
  const folder = await temporaryDirectory(context)
  const file = join(folder, 'dsc.yaml')
  writeFileSync(file, block.text)
  execute(process.execPath, [join(ROOT, 'bin/dsc.js'), 'config', '--config', file], folder)
}

/** The block compiles in a strict project that has the package; `given` declares what is the reader's own. */
async function typeCheck(context: TestContext, block: DocumentBlock): Promise<void> {
  const folder = await temporaryDirectory(context)
  mkdirSync(join(folder, 'node_modules/@types'), { recursive: true })
  symlinkSync(ROOT, join(folder, 'node_modules/dsc'))
  symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'block.ts'), `${block.given}\n${block.text}\nexport {}\n`)
  const compilerOptions = {
    strict: true,
    noEmit: true,
    module: 'nodenext',
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    types: ['node'],
    skipLibCheck: true,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['block.ts'] }))
  execute(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], folder)
}

/** The block is Python; `npm run test:torch` runs the programs behind it. */
async function compilePython(_: TestContext, block: DocumentBlock): Promise<void> {
  execFileSync('python3', ['-c', 'import sys; compile(sys.stdin.read(), sys.argv[1], "exec")', block.place], {
    input: block.text,
  })
}

function writeProgram(path: string, body: string): void {
  writeFileSync(path, `#!/bin/sh\n${body}\n`)
  chmodSync(path, 0o755)
}

/** Runs a program; what it printed becomes the failure of the test. */
function execute(program: string, words: readonly string[], cwd: string, env = process.env): void {
  try {
    execFileSync(program, words, {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
      timeout: 120_000,
    })
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
    throw new Error(`${words.at(-1)}\n${stdout}${stderr}`, { cause: error })
  }
}
