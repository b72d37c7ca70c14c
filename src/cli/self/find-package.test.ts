import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { writeTree } from '../../testing/world.js'
import { findPackage } from './find-package.js'

const RECORD = 'opt/venv/lib/python3.12/site-packages/dsc_data-0.1.0.dist-info/RECORD'
const WHEEL = { [RECORD]: 'dsc/__init__.py,sha256=x,1\n../../../bin/dsc,sha256=x,1\n' }

for (const { name, path, files, expected } of [
  { name: 'a file by itself', path: 'usr/local/bin/dsc', files: {}, expected: undefined },
  {
    name: 'the deb',
    path: 'usr/bin/dsc',
    files: { 'var/lib/dpkg/info/dsc.list': '/.\n/usr/bin/dsc\n', 'usr/lib/dsc/0.1.0-00/package.json': '{}' },
    expected: 'sudo apt install ./<the new dsc_….deb>',
  },
  {
    name: 'a file by itself, after a removal of the deb that left its configuration',
    path: 'usr/bin/dsc',
    files: { 'var/lib/dpkg/info/dsc.list': '/.\n/etc/dsc\n' },
    expected: undefined,
  },
  {
    name: 'a file by itself beside the deb',
    path: 'usr/local/bin/dsc',
    files: { 'var/lib/dpkg/info/dsc.list': '/usr/bin/dsc\n', 'usr/lib/dsc/0.1.0-00/package.json': '{}' },
    expected: undefined,
  },
  {
    name: 'the rpm',
    path: 'usr/bin/dsc',
    files: { 'usr/lib/sysimage/rpm/rpmdb.sqlite': '', 'usr/lib/dsc/0.1.0-00/package.json': '{}' },
    expected: 'sudo dnf install ./<the new dsc-….rpm>',
  },
  {
    name: 'the container image',
    path: 'usr/bin/dsc',
    files: { 'usr/lib/dsc/0.1.0-00/package.json': '{}' },
    expected: 'build the image with the new executable',
  },
  {
    name: 'the wheel, by pip',
    path: 'opt/venv/bin/dsc',
    files: WHEEL,
    expected: '$ROOT/opt/venv/bin/python -m pip install --upgrade <the new dsc_data-….whl>',
  },
  {
    name: 'the wheel, by pipx',
    path: 'opt/venv/bin/dsc',
    files: { ...WHEEL, 'opt/venv/pipx_metadata.json': '{}' },
    expected: 'pipx install --force <the new dsc_data-….whl>',
  },
  {
    name: 'the wheel, by uv',
    path: 'opt/venv/bin/dsc',
    files: { ...WHEEL, 'opt/venv/uv-receipt.toml': '' },
    expected: 'uv tool install --force <the new dsc_data-….whl>',
  },
  {
    name: 'a file by itself beside the Python client alone',
    path: 'opt/venv/bin/dsc',
    files: { [RECORD]: 'dsc/__init__.py,sha256=x,1\n' },
    expected: undefined,
  },
  {
    name: 'npm',
    path: 'usr/lib/node_modules/dsc/bin/dsc.js',
    files: {},
    expected: 'npm install --global <the new dsc-….tgz>',
  },
  {
    name: 'a checkout',
    path: 'home/ada/dsc/bin/dsc.js',
    files: {},
    expected: 'cd $ROOT/home/ada/dsc && git pull && npm ci',
  },
]) {
  test(`how to update: ${name}`, async (context) => {
    const root = await temporaryDirectory(context)
    await writeTree(root, files as Readonly<Record<string, string>>)
    const found = await findPackage(join(root, path))
    assert.equal(found?.command.replace(root, '$ROOT'), expected)
  })
}
