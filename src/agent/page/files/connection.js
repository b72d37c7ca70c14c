// What the agent is asked, and with which right. The link or token comes behind the `#`, which browsers send to nobody,
// is kept for this tab alone, and goes as a header: no cookie that other ports of the host would see.

const KEY = 'dsc-page'

/** Takes the link out of the address, so that it is not shared along with it. */
export function takeLink() {
  const found = /^#(link:\d+\.[\w-]+)$/.exec(location.hash)?.[1]
  if (found === undefined) return
  sessionStorage.setItem(KEY, found)
  history.replaceState(null, '', location.pathname + location.search)
}

/** From now on this is shown to the agent: a link's text or a token. */
export function showAs(secret) {
  sessionStorage.setItem(KEY, secret)
}

function headers() {
  const secret = sessionStorage.getItem(KEY)
  return secret === null ? {} : { authorization: `Bearer ${secret}` }
}

/** The agent wants a link or a token. */
export class NotAllowed extends Error {}

/** Asks for `v1/page/<what>`. Rejects with what the agent said. */
export async function ask(what, parameters, signal) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined))
  const answer = await fetch(`v1/page/${what}?${query}`, { headers: headers(), signal })
  await requireGood(answer)
  return answer.json()
}

async function requireGood(answer) {
  if (answer.ok) return
  const text = await answer.text()
  let message = text
  try {
    message = JSON.parse(text).error.message
  } catch {}
  if (answer.status === 401) throw new NotAllowed(message)
  throw new Error(`${answer.status}: ${message}`)
}

/** Longer without a word means that the connection is gone, ms; the agent says something every 15 s. */
const SILENCE_MS = 40_000

/**
 * Hears what changes, for ever: `on.status` with each message, `on.lost` with the reason when the stream ends; then it is
 * asked for anew after 1 s, 2 s, … 15 s. An `EventSource` would not send the header.
 */
export async function listen(on) {
  for (let attempt = 0; ; attempt += 1) {
    const stop = new AbortController()
    let timer
    const watch = () => {
      clearTimeout(timer)
      timer = setTimeout(() => stop.abort(), SILENCE_MS)
    }
    try {
      watch()
      const answer = await fetch('v1/page/live', { headers: headers(), signal: stop.signal })
      await requireGood(answer)
      for await (const message of readMessages(answer.body, watch)) {
        attempt = 0
        on.status(JSON.parse(message))
      }
      on.lost(new Error('the agent ended the connection'))
    } catch (error) {
      on.lost(error)
      if (error instanceof NotAllowed) return
    }
    clearTimeout(timer)
    await new Promise((resolve) => setTimeout(resolve, Math.min(15, 1 + attempt) * 1000))
  }
}

async function* readMessages(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    heard()
    text += value
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const data = text
        .slice(0, end)
        .split('\n')
        .filter((line) => line.startsWith('data: '))
        .map((line) => line.slice(6))
        .join('\n')
      text = text.slice(end + 2)
      if (data !== '') yield data
    }
  }
}
