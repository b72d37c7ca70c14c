// Makes dsc-<version>.tgz for `npm install --global --offline`: what `npm pack` makes, with the dependencies in it.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
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
  manifest.bundleDependencies = Object.keys(manifest.dependencies)
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  npm(folder, 'pack', '--ignore-scripts', '--pack-destination', output)
  process.stdout.write(`${join(output, filename)}\n`)
}

function npm(cwd, ...words) {
  return execFileSync('npm', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}
