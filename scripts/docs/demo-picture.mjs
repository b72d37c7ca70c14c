// `npm run docs:demo`: writes docs/demo.svg, 20 seconds of a real run. A folder is staged with a bandwidth limit, so that
// there is progress to see; a second job gets it at once; a third is refused, and its holders are named.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openTerminal } from '../../dist/testing/tmux-terminal.js'
import { drawRecording } from './draw-terminal.mjs'

const ROOT = join(import.meta.dirname, '../..')
const SIZE = { columns: 96, rows: 20 }
const MIB = 2 ** 20
/** Longer stillness is cut to this, so that nobody watches a cursor. */
const MOST_STILL_MS = 1_600
const SAMPLE_MS = 150

const folder = mkdtempSync(join(tmpdir(), 'dsc-demo-'))
const cleanups = []
const frames = []
try {
  for (const [name, files] of [
    ['imagenet-val', 60],
    ['speech', 10],
  ]) {
    mkdirSync(join(folder, 'data', name), { recursive: true })
    for (let index = 0; index < files; index++)
      writeFileSync(join(folder, 'data', name, `${index}.bin`), Buffer.alloc(2 * MIB, index))
  }
  const datasets = ['imagenet-val', 'speech']
    .map((name) => `  ${name}: { source: ./data/${name} }\n`)
    .join('')
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `node: gpu-07\nrecord: record.db\ncache: { root: cache, maxDatasets: 1 }\nstage: { bandwidthLimit: 32MiB/s }\ndatasets:\n${datasets}`,
  )
  const terminal = await openTerminal({ after: (end) => cleanups.push(end) }, { ...SIZE, directory: folder })
  const dsc = `'${process.execPath}' '${join(ROOT, 'bin/dsc.js')}'`
  await terminal.press(`dsc() { ${dsc} "$@"; }; PS1='$ '; clear`, 'Enter')
  await terminal.waitFor(/^\$ *$/m)
  await show(terminal, 'dsc prepare imagenet-val --task train-1', /\/files\s+\$ *$/)
  await show(
    terminal,
    'dsc prepare imagenet-val --task train-2   # a second job',
    /\/files[\s\S]*\/files\s+\$ *$/,
  )
  await show(terminal, 'dsc prepare speech --task eval', /no room[\s\S]*\$ *$/)
  await show(terminal, 'dsc leases', /HOLDER[\s\S]*\$ *$/)
  frames.at(-1).ms = 3_000
  const title =
    'dsc downloads a dataset, hands it to a second job at once, and refuses a third, naming the holders'
  writeFileSync(join(ROOT, 'docs/demo.svg'), drawRecording(frames, { ...SIZE, title }))
  const totalMs = frames.reduce((sum, { ms }) => sum + ms, 0)
  process.stdout.write(`docs/demo.svg: ${frames.length} frames, ${(totalMs / 1000).toFixed(1)} s\n`)
} finally {
  for (const end of cleanups) await end()
  rmSync(folder, { recursive: true, force: true })
}

/** Types the command and records the screen until it matches. */
async function show(terminal, command, pattern) {
  for (const part of command.match(/.{1,6}/g)) {
    await terminal.press('-l', part)
    await record(terminal)
    await sleep(60)
  }
  await terminal.press('Enter')
  const endMs = Date.now() + 60_000
  while (!pattern.test((await terminal.screen()).join('\n').trimEnd())) {
    if (Date.now() > endMs) throw new Error(`${command}: expected ${pattern}`)
    await record(terminal)
    await sleep(SAMPLE_MS)
  }
  await record(terminal)
  frames.at(-1).ms = MOST_STILL_MS
}

/** Adds the screen, or shows the last frame longer where nothing changed. */
async function record(terminal) {
  const screen = (await terminal.styledScreen()).replace(/\n$/, '')
  const last = frames.at(-1)
  const nowMs = Date.now()
  if (last) last.ms = Math.min(MOST_STILL_MS, Math.max(last.ms, nowMs - last.atMs))
  if (last?.screen !== screen) frames.push({ screen, ms: SAMPLE_MS, atMs: nowMs })
}
