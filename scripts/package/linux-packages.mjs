// Makes a deb and an rpm from one description, with nfpm: the executable, its program unpacked where every user may read
// it, the unit for systemd, completions, the man pages and the documents. `dsc setup` writes the configuration.
import { execFileSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { AGENT_UNIT, formatAgentUnit } from '../../dist/cli/units/agent-unit.js'
import { writeAnswerSchema } from './answer-schema.mjs'
import { formatManPages } from './man-pages.mjs'

const ROOT = resolve(import.meta.dirname, '../..')
const NFPM = 'github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0' // later ones need modules that no proxy has

/** Makes both below `output` from the executable, and gives their paths. */
export async function makeLinuxPackages(target, output, executable) {
  const work = join(output, '.work', target)
  const { version, description, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
  const { id } = JSON.parse(readFileSync(join(work, 'program.json'), 'utf8'))
  const files = join(work, 'linux')
  writeAnswerSchema()
  mkdirSync(files, { recursive: true })
  const pages = Object.entries(await formatManPages(version))
  for (const [page, text] of pages) writeFileSync(join(files, `${page}.gz`), gzipSync(text, { level: 9 }))
  writeFileSync(join(files, AGENT_UNIT), formatAgentUnit(['/usr/bin/dsc']))
  for (const shell of ['bash', 'zsh', 'fish']) {
    const script = execFileSync(process.execPath, [join(ROOT, 'bin/dsc.js'), 'completion', shell])
    writeFileSync(join(files, shell), script)
  }
  const at = (path) => join(import.meta.dirname, 'linux', path)
  const packaged = {
    name: 'dsc',
    arch: target === 'linux-arm64' ? 'arm64' : 'amd64',
    platform: 'linux',
    version,
    section: 'science',
    maintainer: 'the dsc developers <dsc@localhost>',
    description,
    license,
    depends: [],
    overrides: {
      deb: { depends: ['libc6 (>= 2.34)', 'libstdc++6', 'passwd'], recommends: ['ca-certificates'] },
      rpm: { depends: ['glibc >= 2.34', 'libstdc++', 'shadow-utils'], recommends: ['ca-certificates'] },
    },
    contents: [
      { src: executable, dst: '/usr/bin/dsc', file_info: { mode: 0o755 } },
      ...tree(join(work, 'program'), `/usr/lib/dsc/${id}`),
      { src: join(files, AGENT_UNIT), dst: `/usr/lib/systemd/system/${AGENT_UNIT}` },
      ...pages.map(([page]) => ({ src: join(files, `${page}.gz`), dst: `/usr/share/man/man1/${page}.gz` })),
      { src: join(files, 'bash'), dst: '/usr/share/bash-completion/completions/dsc' },
      { src: join(files, 'zsh'), dst: '/usr/share/zsh/vendor-completions/_dsc' },
      { src: join(files, 'fish'), dst: '/usr/share/fish/vendor_completions.d/dsc.fish' },
      ...['README.md', 'CHANGELOG.md', 'LICENSE'].map((page) => ({
        src: join(ROOT, page),
        dst: `/usr/share/doc/dsc/${page}`,
      })),
      { src: join(ROOT, 'LICENSE'), dst: '/usr/share/doc/dsc/copyright' }, // where Debian looks for it
      {
        src: join(work, 'program/THIRD-PARTY-LICENSES.txt'),
        dst: '/usr/share/doc/dsc/THIRD-PARTY-LICENSES.txt',
      },
      ...tree(join(ROOT, 'docs'), '/usr/share/doc/dsc/docs'),
      ...tree(join(ROOT, 'scripts/slurm'), '/usr/share/dsc/slurm'),
      ...tree(join(ROOT, 'scripts/kubernetes'), '/usr/share/dsc/kubernetes'),
    ].map(({ file_info, ...content }) => ({ ...content, file_info: { mode: 0o644, ...file_info } })),
    scripts: {
      postinstall: at('after-install.sh'),
      preremove: at('before-remove.sh'),
      postremove: at('after-remove.sh'),
    },
  }
  const config = join(work, 'nfpm.yaml') // JSON is YAML
  writeFileSync(config, JSON.stringify(packaged, undefined, 1))
  const nfpm = buildNfpm()
  for (const packager of ['deb', 'rpm']) {
    execFileSync(nfpm, ['package', '--config', config, '--packager', packager, '--target', output], {
      stdio: ['ignore', 'inherit', 'inherit'],
      // Dates inside the packages: one for all, so that the same commit gives the same bytes.
      env: { ...process.env, SOURCE_DATE_EPOCH: '315532800' },
    })
  }
}

/** Every file below a folder, one by one: their modes are ours to say, not those of the checkout. */
function tree(folder, destination) {
  return globSync('**/*', { cwd: folder, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((src) => ({
      src,
      dst: destination + src.slice(folder.length),
      file_info: { mode: src.endsWith('.sh') ? 0o755 : 0o644 },
    }))
}

/** Builds nfpm once, outside the checkout, and gives its path. */
function buildNfpm() {
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), '.cache')
  const folder = join(cache, 'dsc-test/nfpm', NFPM.split('@')[1])
  execFileSync('go', ['install', NFPM], {
    env: { ...process.env, GOBIN: folder },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return join(folder, 'nfpm')
}
