// `npm run docs:picture`: writes docs/status.svg from a real run. Two nodes share a record; datasets are staged, leased
// and locked with dsc itself, and the live screen is taken from a terminal of tmux while one more is being staged.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openTerminal } from '../../dist/testing/tmux-terminal.js'
import { drawTerminal } from './draw-terminal.mjs'

const ROOT = join(import.meta.dirname, '../..')
const COLUMNS = 96
const MIB = 2 ** 20
/** Files and bytes of each. */
const DATASETS = {
  'flowers-102': { files: 120, bytes: 2 * MIB },
  'imagenet-val': { files: 400, bytes: MIB },
  'speech-dev': { files: 60, bytes: 3 * MIB },
  'web-shard-7': { files: 8, bytes: 12 * MIB },
  coco: { files: 300, bytes: 2 * MIB },
}

const folder = mkdtempSync(join(tmpdir(), 'dsc-'))
const cleanups = []
try {
  for (const [name, { files, bytes }] of Object.entries(DATASETS)) {
    mkdirSync(join(folder, 'data', name), { recursive: true })
    for (let index = 0; index < files; index++)
      writeFileSync(join(folder, 'data', name, `${index}.bin`), Buffer.alloc(bytes, index))
  }
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: record.db\ncache: { root: cache, maxDatasets: 5 }\ndatasets:\n${Object.keys(DATASETS)
      .map((name) => `  ${name}: { source: ./data/${name} }\n`)
      .join('')}`,
  )
  dsc('gpu-07', 'prepare', 'flowers-102', '--task', 'train-2231')
  dsc('gpu-07', 'prepare', 'flowers-102', '--task', 'eval-2240')
  dsc('gpu-07', 'prepare', 'imagenet-val', '--task', 'train-2231')
  dsc('gpu-07', 'prepare', 'speech-dev', '--task', 'train-2198')
  dsc('gpu-07', 'release', 'speech-dev', '--task', 'train-2198')
  dsc('gpu-08', 'prepare', 'web-shard-7', '--task', 'train-2198')
  dsc('gpu-08', 'release', 'web-shard-7', '--task', 'train-2198')
  dsc('gpu-08', 'lock', 'web-shard-7', '--reason', 'paper deadline')
  dsc('gpu-08', 'prepare', 'imagenet-val', '--task', 'sweep-5')
  const staging = spawn(
    ...program('gpu-08', ['prepare', 'coco', '--task', 'sweep-6', '--bandwidth-limit', '40MiB/s']),
  )
  cleanups.push(() => staging.kill())

  const terminal = await openTerminal(
    { after: (end) => cleanups.push(end) },
    { columns: COLUMNS, rows: 17, directory: folder },
  )
  const [node, words] = program('gpu-07', ['status'])
  await terminal.press(
    `clear; DSC_NODE=gpu-07 DSC_CACHE_ROOT=cache-gpu-07 ${node} ${words.join(' ')}`,
    'Enter',
  )
  await terminal.waitFor(/coco .* [3-7]\d%/, 60_000)
  const svg = drawTerminal(
    await terminal.styledScreen(),
    COLUMNS,
    'dsc status: two nodes, a dataset being staged, and which task keeps which copy',
  )
  writeFileSync(join(ROOT, 'docs/status.svg'), svg)
  await terminal.press('q')
} finally {
  for (const end of cleanups) await end()
  rmSync(folder, { recursive: true, force: true })
}

function dsc(node, ...words) {
  const [command, args, options] = program(node, words)
  execFileSync(command, args, { ...options, stdio: ['ignore', 'ignore', 'inherit'] })
}

/** What `spawn` takes to run dsc as `node`, quietly. */
function program(node, words) {
  return [
    process.execPath,
    [join(ROOT, 'bin/dsc.js'), ...words],
    {
      cwd: folder,
      stdio: 'ignore',
      env: { ...process.env, DSC_NODE: node, DSC_CACHE_ROOT: join(folder, `cache-${node}`) },
    },
  ]
}
