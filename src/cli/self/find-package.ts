import { existsSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { tryReadFile } from '../../platform/try-read-file.js'

/** A package that a program is part of, and the command that updates it. */
export interface Package {
  readonly name: string
  readonly command: string
}

/**
 * Finds the package of the program at `path` (without links in it); undefined: it is an executable by itself, which
 * may be replaced. Looks below the prefix of `path`, so that it works for the tree of another root, too.
 */
export async function findPackage(path: string): Promise<Package | undefined> {
  const prefix = dirname(dirname(path)) // above bin/
  if (path.endsWith(join('bin', 'dsc.js'))) {
    return path.includes(`${sep}node_modules${sep}`)
      ? { name: 'the npm package', command: 'npm install --global <the new dsc-….tgz>' }
      : { name: 'a checkout', command: `cd ${prefix} && git pull && npm ci` }
  }
  if (tryReadFile(join(prefix, '../var/lib/dpkg/info/dsc.list'))?.includes('/usr/bin/dsc\n'))
    return { name: 'the deb', command: 'sudo apt install ./<the new dsc_….deb>' }
  if (existsSync(join(prefix, 'lib/dsc'))) {
    return existsSync(join(prefix, 'lib/sysimage/rpm')) || existsSync(join(prefix, '../var/lib/rpm'))
      ? { name: 'the rpm', command: 'sudo dnf install ./<the new dsc-….rpm>' }
      : { name: 'a container image', command: 'build the image with the new executable' }
  }
  return findWheel(path, prefix)
}

/** pip notes what it installs in RECORD; uv and pipx leave a file in the environment that they made for dsc. */
async function findWheel(path: string, prefix: string): Promise<Package | undefined> {
  const { default: glob } = await import('fast-glob')
  const records = await glob('{lib,lib64}/python3*/*-packages/dsc_data-*.dist-info/RECORD', { cwd: prefix })
  if (!records.some((record) => /^(\.\.\/)+bin\/dsc,/m.test(tryReadFile(join(prefix, record)) ?? '')))
    return undefined
  const wheel = '<the new dsc_data-….whl>'
  if (existsSync(join(prefix, 'uv-receipt.toml')))
    return { name: 'a wheel', command: `uv tool install --force ${wheel}` }
  if (existsSync(join(prefix, 'pipx_metadata.json')))
    return { name: 'a wheel', command: `pipx install --force ${wheel}` }
  return { name: 'a wheel', command: `${join(dirname(path), 'python')} -m pip install --upgrade ${wheel}` }
}
