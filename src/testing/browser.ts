import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { TestContext } from 'node:test'
import { type Browser, chromium, type Page } from 'playwright-core'
import { needs } from './needs.js'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/** A wait for the browser or its page fails after so long, ms: both are slow on a busy machine. */
const LIMIT_MS = 120_000

/** Why tests with a browser are skipped, or false. `DSC_TEST_CHROMIUM` is the path of another browser. */
export const needsBrowser: string | false = findBrowser() === undefined && needs('chromium', 'chromium')

function findBrowser(): string | undefined {
  return [process.env.DSC_TEST_CHROMIUM ?? '', ...PLACES].find((path) => path !== '' && existsSync(path))
}

/** A real headless Chromium; closed with the test. */
export async function openBrowser(context: Pick<TestContext, 'after'>): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: findBrowser()!,
    timeout: LIMIT_MS,
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
  })
  context.after(() => browser.close())
  return browser
}

/** How to view a page. */
export interface Look {
  readonly width: number
  readonly theme: 'light' | 'dark'
}

/** A page, and its problems: errors, console messages, and dialogs, which hostile text could open. */
export async function openPage(
  browser: Browser,
  { width, theme }: Look,
): Promise<{ readonly page: Page; readonly troubles: string[] }> {
  const session = await browser.newContext({
    viewport: { width, height: 900 },
    colorScheme: theme,
    reducedMotion: 'reduce',
  })
  session.setDefaultTimeout(LIMIT_MS)
  const page = await session.newPage()
  const troubles: string[] = []
  page.on('pageerror', (error) => troubles.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') troubles.push(message.text())
  })
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return { page, troubles }
}

/** axe's findings against WCAG 2.2 A and AA and its own best practices, one line each. */
export async function findBarriers(page: Page): Promise<readonly string[]> {
  // The page's own policy admits only its own files; the debugger bypasses it.
  const { readFileSync } = await import('node:fs')
  const source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(source)
  const found = await page.evaluate(
    `axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.flatMap(({ id, help, nodes }) =>
      nodes.map(({ html, failureSummary }) => id + ': ' + help + ': ' + html.slice(0, 200) + ' ' + failureSummary)))`,
  )
  return found as readonly string[]
}
