// Says what is inside of the packages: an SBOM of the production dependencies and Node, their licences in one file, and
// digests of all that was made.
import { createHash } from 'node:crypto'
import { existsSync, globSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '../..')
const LICENCE = /^(licen[cs]e|copying|notice)/i

/**
 * Writes dsc-<version>.cdx.json (CycloneDX) from the lock file. `npm sbom --omit dev` leaves out what development needs,
 * too: pg, for one.
 */
export function writeSbom(output) {
  const { name, version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { node } = process.versions
  const component = (type, about) => ({
    type,
    'bom-ref': about.purl,
    name: about.name,
    version: about.version,
    purl: about.purl,
    licenses: [{ expression: about.license }],
    ...(about.integrity ? { hashes: [{ alg: 'SHA-512', content: toHex(about.integrity) }] } : {}),
  })
  const libraries = listProduction().map((about) =>
    component('library', { ...about, purl: `pkg:npm/${about.name.replace('@', '%40')}@${about.version}` }),
  )
  const sbom = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    version: 1,
    metadata: {
      component: component('application', { name, version, license, purl: `pkg:npm/${name}@${version}` }),
    },
    components: [
      component('platform', {
        name: 'node',
        version: node,
        license: 'MIT',
        purl: `pkg:generic/node@${node}`,
      }),
      ...libraries,
    ],
  }
  const path = join(output, `dsc-${version}.cdx.json`)
  writeFileSync(path, `${JSON.stringify(sbom, undefined, 2)}\n`)
  return path
}

/** Every package that dsc runs with, each version once, in the order of the lock file. */
function listProduction() {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'))
  const found = new Map()
  for (const [path, about] of Object.entries(packages)) {
    if (path === '' || about.dev || about.devOptional) continue
    const name = path.replace(/^.*node_modules\//, '')
    const { version, license, integrity } = about
    found.set(`${name}@${version}`, { name, version, license, integrity, folder: join(ROOT, path) })
  }
  return [...found.values()]
}

function toHex(integrity) {
  return Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex')
}

/** The licences of Node and of every production dependency, as they come with them, as one text. */
export function gatherLicences() {
  const parts = [`Node.js ${process.versions.node}\n\n${readFileSync(findNodeLicence(), 'utf8')}`]
  for (const { name, version, license, folder } of listProduction()) {
    if (!existsSync(folder)) continue // for another machine
    const texts = readdirSync(folder)
      .filter((file) => LICENCE.test(file))
      .sort()
      .map((file) => readFileSync(join(folder, file), 'utf8').trimEnd())
    const said = texts.length > 0 ? texts.join('\n\n') : `${license} (the package has no file with its text)`
    parts.push(`${name} ${version}\n\n${said}\n`)
  }
  return parts.join(`\n${'='.repeat(80)}\n\n`)
}

/** Node's own licence lies beside its binary, in the package that brings it. */
function findNodeLicence() {
  const [beside] = globSync('**/LICENSE', { cwd: join(ROOT, 'node_modules/node') })
  const path = beside
    ? join(ROOT, 'node_modules/node', beside)
    : join(dirname(process.execPath), '../LICENSE')
  if (!existsSync(path)) throw new Error(`${process.execPath} comes without the LICENSE of Node`)
  return path
}

/** Writes SHA256SUMS, as `sha256sum --check` reads it. A signature of other sums goes. */
export function writeChecksums(output) {
  rmSync(join(output, 'SHA256SUMS.minisig'), { force: true })
  const files = readdirSync(output, { withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'SHA256SUMS')
    .map(({ name }) => name)
    .sort()
  const lines = files.map(
    (name) =>
      `${createHash('sha256')
        .update(readFileSync(join(output, name)))
        .digest('hex')}  ${name}\n`,
  )
  const path = join(output, 'SHA256SUMS')
  writeFileSync(path, lines.join(''))
  return path
}
