import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { describeFedTime } from '../../model/fed-time.js'
import { openSqliteRecord } from '../../records/sqlite/record-store.js'
import { findBarriers, needsBrowser, openBrowser, openPage } from '../../testing/browser.js'
import { exampleCopy } from '../../testing/example-copies.js'
import { advanceStagings, fillRecord } from '../../testing/example-record.js'
import { findFreePort } from '../../testing/free-port.js'
import { makeWorld, waitFor } from '../../testing/world.js'

const skip = needsBrowser
const HOSTILE = '<img src=x onerror=alert(1)>"><script>alert(2)</script>\u202egnp.exe'
const VIEWS = [
  'overview',
  'datasets',
  'nodes',
  'copies',
  'leases',
  'history',
  'report?since=30d&price=0.09',
  'why?dataset=dataset-0001',
] as const

/** An agent over a record with nodes, copies, leases, stagings and a name that wants to be a script. */
async function startPage(context: TestContext, settings: { readonly agent?: Record<string, unknown> } = {}) {
  const port = await findFreePort()
  const world = await makeWorld(context, { agent: { listen: `127.0.0.1:${port}`, ...settings.agent } })
  const record = await openSqliteRecord(world.recordPath)
  const nowMs = Date.now()
  const stagings = await fillRecord(record, { copies: 120, nodes: 6, stagings: 2, nowMs })
  const hostile = exampleCopy(HOSTILE, { copyId: 'hostile', node: 'gpu-01', version: 'e'.repeat(64) })
  await record.addAdopted({ ...hostile, path: `/nvme/${HOSTILE}` }, nowMs)
  const lease = { task: HOSTILE, holder: { kind: 'ttl' as const }, expiresAtMs: nowMs + 3_600_000 }
  await record.leaseReady({ dataset: HOSTILE, node: 'gpu-01', lease }, nowMs)
  const fed = describeFedTime(
    { sinceAgoMs: 1_800_000, gpus: 8, gpuMs: 14_400_000, waits: { disk: 1_000_000 } },
    nowMs,
  )
  await record.addEvent({ ...fed, node: 'gpu-01', dataset: 'dataset-0001', copyId: null, task: 'job-4711' })
  context.after(() => record.close())
  const url = `http://127.0.0.1:${port}/`
  const agent = world.start(['agent'])
  await waitFor('the agent', () =>
    fetch(`${url}readyz`).then(
      (answer) => answer.ok,
      () => false,
    ),
  )
  return {
    world,
    url,
    agent,
    record,
    advance: (bytes: number) => advanceStagings(record, stagings, bytes, Date.now()),
  }
}

/** Opens a view and waits until it shows what the agent said. */
async function show(page: Page, url: string, view: string) {
  await page.goto(`${url}#/${view}`)
  await page.locator(`main[data-view="${view.split('?')[0]}"]`).waitFor()
  await page.locator('#connection', { hasText: /^live$/ }).waitFor()
}

test('the page is whole, plain to all and still at 400 and 2,000 px, light and dark', {
  skip,
}, async (context) => {
  const { url } = await startPage(context)
  const browser = await openBrowser(context)
  const shots = process.env.DSC_TEST_SCREENSHOTS
  if (shots) await mkdir(shots, { recursive: true })
  for (const theme of ['light', 'dark'] as const) {
    for (const width of [400, 2000]) {
      const { page, troubles } = await openPage(browser, { width, theme })
      // Each view in both themes and at both widths; the two with pictures in all four ways.
      const isAll = shots !== undefined || (theme === 'light') === (width === 400)
      for (const view of isAll ? VIEWS : VIEWS.slice(0, 2)) {
        await show(page, url, view)
        if (shots)
          await page.screenshot({
            path: join(shots, `${view.split('?')[0]}-${width}-${theme}.png`),
            fullPage: true,
          })
        assert.deepEqual(await findBarriers(page), [], `${view}, ${width} px, ${theme}`)
        const overflow = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        )
        assert.equal(overflow, 0, `${view} is wider than ${width} px`)
        assert.equal(
          await page.locator('img, iframe, script:not([src])').count(),
          0,
          'names became no elements',
        )
      }
      assert.deepEqual(troubles, [])
      await page.context().close()
    }
  }
})

test('what names hide is shown, and what they say is text', { skip }, async (context) => {
  const { url } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  const query = new URLSearchParams({ dataset: HOSTILE })
  for (const view of [`leases?${query}`, `copies?${query}`, `why?${query}`, 'datasets?filter=img']) {
    await show(page, url, view)
    const text = await page.locator('main').innerText()
    assert.match(text, /<img src=x onerror=alert\(1\)>"><script>alert\(2\)<\/script>\ufffdgnp\.exe/, view)
  }
  assert.deepEqual(troubles, [])
})

test('a staging moves on the page without anybody asking', { skip }, async (context) => {
  const { url, advance } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1200, theme: 'dark' })
  await show(page, url, 'overview')
  const stagings = page.locator('section.stagings')
  await stagings.getByText('43 %').first().waitFor()
  await advance(4 * 1024 ** 3)
  await stagings.getByText('63 %').waitFor()
  assert.match(
    (await stagings.innerText()).replaceAll(/\s+/g, ' '),
    /webdata-1 gpu-01 s3:\/\/bucket .* job-4800 \+1/,
  )
  assert.deepEqual(troubles, [])
})

test('what is wrong is on top, in the title and in the icon, with a command to copy', {
  skip,
}, async (context) => {
  const { url } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await show(page, url, 'overview')
  const top = page.locator('main > section').first()
  assert.match(await top.innerText(), /1 problem[\s\S]*refused[\s\S]*job-4712 wants laion-huge on gpu-01/)
  await top.getByRole('button').click()
  await top.locator('[data-said="copied"]').waitFor()
  assert.equal(await page.evaluate('navigator.clipboard.readText()'), 'dsc why laion-huge --node gpu-01')
  const icon = () => page.evaluate('document.querySelector("link[rel=icon]").href')
  assert.match(String(await icon()), /%23cf2a31/)
  assert.match(await page.title(), /^\(1\) Overview · dsc /)
  await show(page, url, 'leases')
  assert.match(await page.locator('#problems').innerText(), /1 problem/)
  assert.deepEqual(troubles, [])
})

test('curves and the map of nodes are drawn, and the cursor tells their values', {
  skip,
}, async (context) => {
  const { url } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1280, theme: 'dark' })
  await show(page, url, 'overview')
  const inked = () =>
    page.evaluate(`[...document.querySelectorAll('.plot canvas, canvas.heat')].map((canvas) =>
      canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value > 0))`)
  await page.locator('.plot canvas').nth(5).waitFor()
  // No job used a dataset: there is no share of hits to draw.
  assert.deepEqual(await inked(), [true, false, true, true, true, true, true])
  await page.locator('#curve-space').hover()
  for (const key of ['space', 'waiting', 'stalls', 'uses'])
    assert.match(await page.locator(`#readout-${key}`).innerText(), /^\d\d:\d\d/, key)
  const map = (await page.locator('canvas.heat').boundingBox())!
  await page.mouse.move(map.x + map.width - 4, map.y + 30)
  assert.match(
    await page.locator('#heat-readout').innerText(),
    /^gpu-01 \d\d:\d\d–\d\d:\d\d · .* · 1 refusal$/,
  )
  assert.deepEqual(troubles, [])
})

test('the wall fills 2,000 × 1,200 with type of at least 24 px, and nothing to click', {
  skip,
}, async (context) => {
  const { url } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 2000, theme: 'dark' })
  await page.setViewportSize({ width: 2000, height: 1200 })
  await page.goto(`${url}?wall`)
  await page.locator('.low .st').waitFor()
  assert.match(await page.locator('main').innerText(), /1\s+problem[\s\S]*refused[\s\S]*laion-huge/)
  assert.equal(await page.locator('main :is(a, button, input)').count(), 0)
  const small = await page.evaluate(`[...document.querySelectorAll('main *')]
    .filter((element) => [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== ''))
    .filter((element) => !element.closest('[aria-hidden]') && parseFloat(getComputedStyle(element).fontSize) < 24)
    .map((element) => element.outerHTML)`)
  assert.deepEqual(small, [])
  const edges = await page.evaluate(`({
    over: document.documentElement.scrollHeight - innerHeight,
    bottom: Math.max(...[...document.querySelectorAll('.low .card')].map((card) => card.getBoundingClientRect().bottom)),
  })`)
  const { over, bottom } = edges as { over: number; bottom: number }
  assert.ok(over === 0 && bottom > 1150 && bottom <= 1200, `over ${over}, bottom ${bottom}`)
  assert.deepEqual(await findBarriers(page), [])
  assert.deepEqual(troubles, [])
})

test('filters complete names', { skip }, async (context) => {
  const { url } = await startPage(context)
  const { page } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await show(page, url, 'history')
  await page.getByLabel('Dataset').fill('set-002')
  const offered = page.locator('#known-datasets option')
  await waitFor('the ten names with these letters', async () => (await offered.count()) === 10)
  assert.equal(await offered.first().getAttribute('value'), 'dataset-0020')
  assert.equal(await page.getByLabel('Dataset').getAttribute('list'), 'known-datasets')
})

test('the shares of a node stand under the nodes', { skip }, async (context) => {
  const { url, record } = await startPage(context)
  const node = (await record.listNodes()).find((entry) => entry.node === 'gpu-01')!
  const shares = [
    { party: 'group:vision', percent: 50 },
    { party: 'user:<b>ada', percent: 10 },
  ]
  await record.saveNode({ ...node, policy: { ...node.policy, shares } })
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await show(page, url, 'nodes')
  const section = page.locator('section[aria-labelledby="shares"]')
  await section.getByText('group:vision').waitFor()
  const text = (await section.innerText()).replaceAll(/\s+/g, ' ')
  assert.match(text, /user:<b>ada/)
  assert.match(text, /nobody’s share gpu-01 0 B [\d.]+ GiB [\d.]+ GiB \d+/)
  assert.deepEqual(await findBarriers(page), [])
  assert.deepEqual(troubles, [])
})

test('the report says what was refused and what nobody uses, over the time that is asked', {
  skip,
}, async (context) => {
  const { url } = await startPage(context)
  const { page, troubles } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await show(page, url, 'report')
  const main = page.locator('main')
  assert.match(await main.innerText(), /laion-huge/)
  assert.match(await main.innerText(), /\d+% of [\d.]+ GPU-\w+ waited/)
  await page.getByLabel('The last').fill('30d')
  await page.getByLabel('Price of a GB').fill('0.09')
  await page.keyboard.press('Enter')
  await page.waitForURL(/since=30d.*price=0\.09/)
  await main.getByRole('heading', { name: 'Used by nobody' }).waitFor()
  await page.getByLabel('The last').fill('a week')
  await page.keyboard.press('Enter')
  await page.getByText(/since: expected a duration/).waitFor()
  assert.deepEqual(
    troubles.filter((trouble) => !/400/.test(trouble)),
    [],
  )
})

test('the datasets are walked by keyboard alone', { skip }, async (context) => {
  const { url } = await startPage(context)
  const { page } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await show(page, url, 'datasets?filter=dataset-')
  await page.locator('td[tabindex="0"]').focus()
  const focused = () => page.evaluate("document.activeElement.getAttribute('aria-label')")
  assert.match(String(await focused()), /^dataset-0001 on gpu-01: ready, 1 lease/)
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowDown')
  assert.match(String(await focused()), /^dataset-0002 on gpu-02: ready/)
  await page.keyboard.press('Shift+Tab')
  await page.keyboard.press('Tab')
  assert.match(
    String(await focused()),
    /^dataset-0002 on gpu-02: ready/,
    'the grid is one stop that is remembered',
  )
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'dataset-0002 on gpu-02' }).waitFor()
})

test('an agent that goes away is said to be gone, and followed again when it is back', {
  skip,
}, async (context) => {
  const { url, agent, world } = await startPage(context)
  const { page } = await openPage(await openBrowser(context), { width: 1200, theme: 'light' })
  await show(page, url, 'overview')
  agent.process.kill('SIGTERM')
  await agent.finished
  await page.getByText(/^nothing new since/).waitFor()
  assert.ok((await page.getByText('gpu-01').count()) > 0, 'what was known stays')
  world.start(['agent'])
  await page.getByText('live', { exact: true }).waitFor()
})
