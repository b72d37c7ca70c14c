// Makes what people install, below dist-packages/ (or --output). Needs pip for the wheels, and Go's nfpm for deb and rpm.
//   npm run package                        all of it
//   npm run package -- executable wheel    some of it; what carries the executable makes it first
//   npm run package -- --sign dsc.key      sign the sums with a key of minisign, whose public key dsc self update then
//                                          knows; --key dsc.pub puts in a public key alone
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { makeExecutable } from './executable.mjs'
import { writeChecksums, writeSbom } from './inventory.mjs'
import { makeLinuxPackages } from './linux-packages.mjs'
import { makeNpmTarball } from './npm-tarball.mjs'
import { readSecretKey, signFile } from './sign-sums.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    target: { type: 'string', default: `linux-${process.arch}` },
    output: { type: 'string', default: 'dist-packages' },
    key: { type: 'string' },
    sign: { type: 'string' },
  },
})
/** better-sqlite3's binary needs glibc 2.34, Node's own 2.28. */
const MANYLINUX = { 'linux-x64': 'manylinux_2_34_x86_64', 'linux-arm64': 'manylinux_2_34_aarch64' }

const { target } = values
const output = resolve(values.output)
mkdirSync(output, { recursive: true })
const signer = values.sign && readSecretKey(values.sign)
const updateKey = values.key ? readFileSync(values.key, 'utf8').trim().split('\n').at(-1) : signer?.publicKey
const executable = await makeExecutable(target, output, updateKey)
process.stdout.write(`${executable}\n`)

const MAKERS = {
  executable: () => {},
  wheel: () =>
    run('python3', resolve(import.meta.dirname, 'wheel.py'), output, executable, MANYLINUX[target]),
  npm: () => makeNpmTarball(output),
  linux: () => makeLinuxPackages(target, output, executable),
}
for (const kind of positionals.length > 0 ? positionals : Object.keys(MAKERS)) {
  const make = MAKERS[kind]
  if (!make) throw new Error(`there is no package called ${kind}: ${Object.keys(MAKERS).join(', ')}`)
  await make()
}
process.stdout.write(`${writeSbom(output)}\n`)
const sums = writeChecksums(output)
process.stdout.write(`${sums}\n`)
if (signer) process.stdout.write(`${signFile(sums, signer, `dsc ${new Date().toISOString()}`)}\n`)

function run(program, ...words) {
  execFileSync(program, words, { stdio: ['ignore', 'inherit', 'inherit'] })
}
