// Makes src/agent/page/files/uplot.js: uPlot, which draws the curves of the agent's page, as one module with its licence.
// The file is in git, so that a build needs nothing for it; run this for another version, and commit what it makes.
//   node scripts/package/page-curves.mjs
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { unpackPackage } from './npm-tarball.mjs'

const VERSION = '1.6.32'

const folder = mkdtempSync(join(tmpdir(), 'dsc-'))
try {
  unpackPackage(`uplot@${VERSION}`, join(folder, 'uplot'))
  const licence = readFileSync(join(folder, 'uplot/LICENSE'), 'utf8').trim()
  await build({
    entryPoints: [join(folder, 'uplot/dist/uPlot.esm.js')],
    outfile: resolve(import.meta.dirname, '../../src/agent/page/files/uplot.js'),
    bundle: true,
    format: 'esm',
    minify: true,
    legalComments: 'none',
    banner: { js: `/*! uPlot ${VERSION}\n${licence}\n*/` },
    logLevel: 'warning',
  })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
