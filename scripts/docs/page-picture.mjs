// Takes the picture of the agent's page in docs/guides/look.md from a real run: two nodes with copies and leases, one dataset
// that is being staged, another for which there is no room. Needs Chromium.
//   npm run build && node scripts/docs/page-picture.mjs
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openBrowser, openPage } from '../../dist/testing/browser.js'
import { findFreePort } from '../../dist/testing/free-port.js'

const ROOT = join(import.meta.dirname, '../..')
const MIB = 2 ** 20
/** MiB of each. */
const DATASETS = {
  'flowers-102': 180,
  'imagenet-val': 240,
  'speech-dev': 60,
  'web-shard-7': 96,
  coco: 400,
  laion: 1,
}

const folder = mkdtempSync(join(tmpdir(), 'dsc-'))
const port = await findFreePort()
const cleanups = []
try {
  for (const [name, mib] of Object.entries(DATASETS)) {
    mkdirSync(join(folder, 'data', name), { recursive: true })
    for (let index = 0; index < mib / 4; index++)
      writeFileSync(join(folder, 'data', name, `${index}.bin`), Buffer.alloc(4 * MIB, index))
  }
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: record.db\ncache: { root: cache, maxDatasets: 3 }\nagent: { listen: 127.0.0.1:${port} }\ndatasets:\n${Object.keys(
      DATASETS,
    )
      .map((name) => `  ${name}: { source: ./data/${name} }\n`)
      .join('')}`,
  )
  dsc('gpu-07', 'prepare', 'flowers-102', '--task', 'train-2231')
  dsc('gpu-07', 'prepare', 'imagenet-val', '--task', 'train-2231')
  dsc('gpu-07', 'prepare', 'speech-dev', '--task', 'eval-2240')
  dsc('gpu-07', 'prepare', 'laion', '--task', 'job-4711') // refused: three datasets are held
  dsc('gpu-08', 'prepare', 'web-shard-7', '--task', 'train-2198')
  dsc('gpu-08', 'prepare', 'imagenet-val', '--task', 'sweep-5')
  start('gpu-08', 'prepare', 'coco', '--task', 'sweep-6', '--bandwidth-limit', '12MiB/s')
  start('gpu-07', 'agent')
  const url = `http://127.0.0.1:${port}/`
  while (
    !(await fetch(`${url}readyz`).then(
      (answer) => answer.ok,
      () => false,
    ))
  )
    await sleep(100)
  const browser = await openBrowser({ after: (end) => cleanups.push(end) })
  const { page } = await openPage(browser, { width: 1500, theme: 'light' })
  await page.goto(url)
  await page
    .getByText(/[3-6]\d % of/)
    .first()
    .waitFor({ timeout: 60_000 })
  await page.setViewportSize({
    width: 1500,
    height: await page.evaluate('document.querySelector("main").offsetHeight + 10'),
  })
  await page.screenshot({ path: join(ROOT, 'docs/page.png') })
} finally {
  for (const end of cleanups.reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
}

function dsc(node, ...words) {
  const [command, args, options] = program(node, words)
  spawnSync(command, args, options)
}

function start(node, ...words) {
  const running = spawn(...program(node, words))
  const ended = new Promise((resolve) => running.once('exit', resolve))
  cleanups.push(() => {
    running.kill('SIGKILL')
    return ended
  })
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
