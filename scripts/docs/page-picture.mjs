// Takes pictures of the agent's page over one invented day of a cluster. Needs Chromium.
//   npm run docs:page                        docs/page.png, for docs/guides/look.md
//   npm run docs:page -- FOLDER [VIEW]       every view (or one) and ?wall: 400, 1,280 and 2,000 px, light and dark
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { openSqliteRecord } from '../../dist/records/sqlite/record-store.js'
import { openBrowser, openPage } from '../../dist/testing/browser.js'
import { findFreePort } from '../../dist/testing/free-port.js'
import { inventDay } from './invented-day.mjs'

const ROOT = join(import.meta.dirname, '../..')
const VIEWS = [
  'overview',
  'datasets',
  'nodes',
  'copies',
  'leases',
  'history',
  'report',
  'why?dataset=imagenet-1k',
]
const [wanted, only] = process.argv.slice(2)

const folder = mkdtempSync(join(tmpdir(), 'dsc-'))
const port = await findFreePort()
const url = `http://127.0.0.1:${port}/`
const cleanups = []
try {
  writeFileSync(
    join(folder, 'dsc.yaml'),
    `record: record.db\ncache: { root: cache }\nagent: { listen: 127.0.0.1:${port} }\n`,
  )
  const record = await openSqliteRecord(join(folder, 'record.db'))
  cleanups.push(() => record.close())
  const advance = await inventDay(record, { nowMs: Date.now(), url })
  await startAgent()
  const moving = setInterval(() => void advance(1), 1000)
  cleanups.push(() => clearInterval(moving))
  const browser = await openBrowser({ after: (end) => cleanups.push(end) })
  if (wanted === undefined)
    await picture(browser, { width: 1280, theme: 'light' }, 'overview', 'docs/page.png')
  else {
    mkdirSync(wanted, { recursive: true })
    for (const theme of ['light', 'dark']) {
      for (const width of [400, 1280, 2000])
        for (const view of VIEWS.filter((each) => only === undefined || each === only))
          await picture(
            browser,
            { width, theme },
            view,
            join(wanted, `${view.split('?')[0]}-${width}-${theme}.png`),
          )
      await picture(browser, { width: 2000, theme }, '?wall', join(wanted, `wall-2000-${theme}.png`))
    }
  }
} finally {
  for (const end of cleanups.reverse()) await end()
  rmSync(folder, { recursive: true, force: true })
}

async function startAgent() {
  const agent = spawn(process.execPath, [join(ROOT, 'bin/dsc.js'), 'agent'], {
    cwd: folder,
    stdio: 'ignore',
    env: { ...process.env, DSC_NODE: 'login-1' },
  })
  const ended = new Promise((resolve) => agent.once('exit', resolve))
  cleanups.push(() => {
    agent.kill('SIGTERM')
    return ended
  })
  const isReady = () =>
    fetch(`${url}readyz`).then(
      (answer) => answer.ok,
      () => false,
    )
  while (!(await isReady())) await sleep(100)
}

async function picture(browser, look, view, path) {
  const { page, troubles } = await openPage(browser, look)
  const isWall = view === '?wall'
  if (isWall) await page.setViewportSize({ width: look.width, height: 1200 })
  await page.goto(isWall ? `${url}?wall` : `${url}#/${view}`)
  await page.locator(`main[data-view="${isWall ? 'overview' : view.split('?')[0]}"]`).waitFor()
  if (isWall || view === 'overview')
    await page
      .getByText(/ left|iB\/s/)
      .first()
      .waitFor()
  await sleep(view === 'overview' || isWall ? 6000 : 300)
  await page.screenshot({ path: join(path), fullPage: !isWall })
  for (const trouble of troubles) process.stderr.write(`${path}: ${trouble}\n`)
  await page.context().close()
}
