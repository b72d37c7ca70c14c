// `npm run docs:site`: builds the documents into dist-site/ with VitePress, which npm fetches once into a folder of its own:
// as a dependency it would cost every `npm ci` 100 MB. The site needs no network; --serve shows it.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const VITEPRESS = '1.6.4'
const ROOT = join(import.meta.dirname, '../..')
const tool = join(ROOT, 'node_modules/.cache/docs-site', VITEPRESS)
const program = join(tool, 'node_modules/vitepress/bin/vitepress.js')

if (!existsSync(program)) {
  mkdirSync(tool, { recursive: true })
  writeFileSync(join(tool, 'package.json'), '{ "private": true, "type": "module" }\n')
  run('npm', ['install', '--no-audit', '--no-fund', '--prefix', tool, `vitepress@${VITEPRESS}`])
}
rmSync(join(tool, 'pages'), { recursive: true, force: true })
cpSync(join(ROOT, 'docs'), join(tool, 'pages'), { recursive: true })
// VitePress looks for its configuration in a folder of that name.
mkdirSync(join(tool, '.vitepress'), { recursive: true })
writeFileSync(
  join(tool, '.vitepress/config.mjs'),
  `export { site as default } from ${JSON.stringify(join(import.meta.dirname, 'site-config.mjs'))}\n`,
)
run(process.execPath, [program, 'build', tool])
if (process.argv.includes('--serve')) run(process.execPath, [program, 'preview', tool])

function run(command, words) {
  const { status } = spawnSync(command, words, { stdio: 'inherit', cwd: tool })
  if (status !== 0) process.exit(status ?? 1)
}
