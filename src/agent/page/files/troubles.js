// What is wrong: on top of the first view, in the title of the tab and in its icon.
import { h, sentence, visible } from './elements.js'
import { clock, count, counted, span } from './format.js'

/** Drawn in the colours of the picture: an icon, an attention sign or a tick. */
const SIGNS = {
  bad: 'M8 1.6 14.9 14H1.1ZM8 6v3.6M8 11.6v.4',
  ok: 'M8 1.8a6.2 6.2 0 1 0 .01 0M5.3 8.2l1.9 1.9 3.6-4',
  copy: 'M5.5 5.5h8v8h-8zM3.5 10.5H2v-8.5h8.5v1.5',
}

export function sign(of) {
  return h('svg', { class: 'sign', viewBox: '0 0 16 16', 'aria-hidden': 'true' }, h('path', { d: SIGNS[of] }))
}

/** A word with its sign and colour. */
export function chip(level, text) {
  return h('span', { class: `chip ${level}` }, level === 'bad' ? sign('bad') : null, text)
}

/** `since 14:21, 11 min`. */
export function since({ since: at }, now) {
  return at === null ? '' : `since ${clock(at)}, ${span(Date.parse(now) - Date.parse(at))}`
}

/** Everything that is wrong, each with the command that helps. */
export function drawTroubles({ status, now }) {
  if (status?.troubles === undefined) return null
  const { troubles, totalTroubles, nodes, leases } = status
  const facts = `${counted(nodes, 'node')} · ${counted(leases, 'lease')}${status.waits > 0 ? ` · ${counted(status.waits, 'job waits', 'jobs wait')}` : ''}`
  if (troubles.length === 0)
    return h(
      'section',
      { class: 'card fine', 'aria-labelledby': 'troubles' },
      h('h2', { id: 'troubles' }, sign('ok'), ' Nothing is wrong.'),
      h('p', { class: 'minor' }, facts),
    )
  return h(
    'section',
    { class: 'card trouble', 'aria-labelledby': 'troubles' },
    h(
      'header',
      null,
      h('h2', { id: 'troubles' }, counted(totalTroubles, 'problem')),
      h('p', { class: 'minor' }, facts),
    ),
    h(
      'ul',
      null,
      troubles.map((trouble) =>
        h(
          'li',
          { key: `${trouble.kind} ${trouble.text}` },
          chip('bad', trouble.kind),
          h(
            'div',
            null,
            h('p', { class: 'what' }, sentence(trouble.text)),
            trouble.since === null ? null : h('p', { class: 'minor' }, since(trouble, now)),
          ),
          commandToCopy(trouble.command),
        ),
      ),
    ),
    totalTroubles > troubles.length
      ? h('p', { class: 'rest' }, `and ${count(totalTroubles - troubles.length)} more`)
      : null,
  )
}

/** A command, copied with a click. */
export function commandToCopy(command) {
  return h(
    'button',
    {
      type: 'button',
      class: 'command',
      title: 'Copy this command',
      'data-said': said.get(command),
      on: { click: ({ currentTarget }) => void copy(currentTarget, command) },
    },
    h('code', null, visible(command)),
    sign('copy'),
    h('span', { class: 'hidden' }, ' copy this command'),
  )
}

/** What a button just did, by its command. */
const said = new Map()

/** Over plain HTTP browsers give no clipboard: then the command is selected, ready for Ctrl-C. */
async function copy(button, command) {
  const code = button.querySelector('code')
  try {
    await navigator.clipboard.writeText(command)
    said.set(command, 'copied')
  } catch {
    getSelection().selectAllChildren(code)
    said.set(command, 'press Ctrl-C')
  }
  button.dataset.said = said.get(command)
  setTimeout(() => {
    said.delete(command)
    button.removeAttribute('data-said')
  }, 2000)
}

let drawnIcon = ''

/** Title and icon: the number of problems, and red while there are any. */
export function markTab(title, status) {
  const problems = status?.totalTroubles ?? 0
  document.title = `${problems > 0 ? `(${problems}) ` : ''}${title} · dsc ${visible(status?.node ?? '')}`
  const colour = problems > 0 ? '%23cf2a31' : '%232f6fe4'
  if (colour === drawnIcon) return
  drawnIcon = colour
  const shape =
    problems > 0
      ? `<circle cx='8' cy='8' r='7.5' fill='${colour}'/><path d='M8 3.5v5.5M8 11.5v1' stroke='white' stroke-width='2' stroke-linecap='round'/>`
      : `<g fill='${colour}'><rect x='1' y='1.5' width='14' height='3.6' rx='1'/><rect x='1' y='6.2' width='9' height='3.6' rx='1'/><rect x='1' y='10.9' width='5' height='3.6' rx='1'/></g>`
  document.querySelector('link[rel=icon]').href =
    `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>${shape}</svg>`
}
