// Makes dsc-<target>: Node's binary with a launcher (src/executable) and the bundled program in it.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { build } from 'esbuild'
import { inject } from 'postject'
import { bundleProgram } from './bundle.mjs'

const ROOT = resolve(import.meta.dirname, '../..')
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2' // the mark that Node looks for in itself

/** Files that every start reads: the launcher compares them with their digests each time. */
const FIRST =
  /^(bin\/|package\.json|dist\/(main\.js|warm-[a-z]+\.cjs)|node_modules\/better-sqlite3\/(lib|prebuilds)\/)/

/** Makes the executable for `target` below `output` and gives its path. `updateKey` is what `dsc self update` believes. */
export async function makeExecutable(target, output, updateKey) {
  const work = join(output, '.work', target)
  mkdirSync(work, { recursive: true })
  const program = join(work, 'program')
  await bundleProgram(program, target, updateKey)
  const launcher = join(work, 'launcher.cjs')
  await build({
    entryPoints: [join(ROOT, 'dist/executable/launcher.js')],
    outfile: launcher,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'warning',
  })
  const paths = globSync('**/*', { cwd: program })
    .filter((path) => statSync(join(program, path)).isFile())
    .sort()
  const files = paths.map((path) => ({
    path,
    sha256: createHash('sha256')
      .update(readFileSync(join(program, path)))
      .digest('hex'),
    isFirst: FIRST.test(path),
  }))
  const { version } = JSON.parse(readFileSync(join(program, 'package.json'), 'utf8'))
  const digest = createHash('sha256').update(JSON.stringify(files)).digest('hex')
  const manifest = join(work, 'program.json')
  writeFileSync(manifest, JSON.stringify({ id: `${version}-${digest.slice(0, 16)}`, files }))

  const config = join(work, 'sea.json')
  const blob = join(work, 'program.blob')
  writeFileSync(
    config,
    JSON.stringify({
      // Relative: the path of the launcher gets into the program.
      main: basename(launcher),
      output: basename(blob),
      disableExperimentalSEAWarning: true,
      // NODE_OPTIONS stays with people's own Node: what it preloads for them may not exist where dsc runs.
      execArgvExtension: 'none',
      assets: {
        'program.json': manifest,
        ...Object.fromEntries(paths.map((path) => [path, join(program, path)])),
      },
    }),
  )
  execFileSync(process.execPath, ['--experimental-sea-config', config], {
    cwd: work,
    stdio: ['ignore', 'ignore', 'pipe'], // a failure shows what it said
  })
  const made = join(output, `dsc-${target}`)
  copyFileSync(await findNode(target, work), `${made}.new`)
  await injectProgram(`${made}.new`, readFileSync(blob))
  chmodSync(`${made}.new`, 0o755)
  renameSync(`${made}.new`, made)
  return made
}

/** Puts the program into Node's binary. What postject warns of, names of sections that `strip` took, does not matter. */
async function injectProgram(path, blob) {
  const { warn } = console
  console.warn = (line) => /^warning: Can't find string offset/.test(line) || warn(line)
  try {
    await inject(path, 'NODE_SEA_BLOB', blob, { sentinelFuse: FUSE })
  } finally {
    console.warn = warn
  }
}

/** Node's binary for `target`, of the version that runs this, without its symbols. */
async function findNode(target, work) {
  const node = join(work, 'node')
  if (target === `linux-${process.arch}`) {
    copyFileSync(process.execPath, node)
  } else {
    const name = `node-${target}@${process.versions.node}`
    const [{ filename }] = JSON.parse(
      execFileSync('npm', ['pack', '--json', name], { cwd: work, encoding: 'utf8' }),
    )
    execFileSync('tar', ['-xzf', filename, '--strip-components=2', 'package/bin/node'], { cwd: work })
  }
  chmodSync(node, 0o755)
  try {
    execFileSync(target === 'linux-arm64' ? 'aarch64-linux-gnu-strip' : 'strip', [node], { stdio: 'ignore' })
  } catch {
    process.stderr.write(`${target}: no strip for it here; the executable is larger\n`)
  }
  return node
}
