// Makes dsc-<version>.tgz for `npm install --global --offline`: what `npm pack` makes, with the dependencies in it.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { writeAnswerSchema } from './answer-schema.mjs'

const ROOT = resolve(import.meta.dirname, '../..')

/** Makes the tarball below `output`. */
export function makeNpmTarball(output) {
  const work = join(output, '.work', 'npm')
  rmSync(work, { recursive: true, force: true })
  mkdirSync(work, { recursive: true })
  const folder = join(work, 'package')
  writeAnswerSchema()
  const [{ filename }] = JSON.parse(
    npm(ROOT, 'pack', '--json', '--ignore-scripts', '--pack-destination', work),
  )
  execFileSync('tar', ['-xzf', filename], { cwd: work })
  cpSync(join(ROOT, 'package-lock.json'), join(folder, 'package-lock.json'))
  npm(folder, 'ci', '--omit=dev', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund')
  rmSync(join(folder, 'package-lock.json'))
  const { scripts, devDependencies, allowScripts, ...manifest } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  )
  const { dependencies, optionalDependencies } = manifest
  for (const name of Object.keys(optionalDependencies)) addForAnyMachine(folder, name)
  manifest.bundleDependencies = Object.keys({ ...dependencies, ...optionalDependencies })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  npm(folder, 'pack', '--ignore-scripts', '--pack-destination', output)
  process.stdout.write(`${join(output, filename)}\n`)
}

/** npm installs an optional dependency where it runs alone; the tarball is for every machine. */
function addForAnyMachine(folder, name) {
  if (existsSync(join(folder, 'node_modules', name))) return
  unpackPackage(`${name}@${readLockedVersion(name)}`, join(folder, 'node_modules', name))
}

/** The version of a package in the lock file. */
export function readLockedVersion(name) {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  return packages[`node_modules/${name}`].version
}

/** Unpacks a package into a folder of its own, without installing it: for a machine other than this one, too. */
export function unpackPackage(spec, folder) {
  mkdirSync(folder, { recursive: true })
  const [{ filename }] = JSON.parse(npm(folder, 'pack', '--json', spec))
  execFileSync('tar', ['-xzf', filename, '--strip-components=1'], { cwd: folder })
  rmSync(join(folder, filename))
}

function npm(cwd, ...words) {
  return execFileSync('npm', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}
