// Tables, their order, their filter and their pages: the agent gives only the rows that are shown.
import { h } from './elements.js'
import { count } from './format.js'

/** Rows of a page. */
export const PAGE_ROWS = 50

/**
 * A table. `columns`: title, cell(row), and optionally sort (a name the agent knows), isNumber. The order comes from
 * `parameters.sort`; `set` changes parameters.
 */
export function table({ caption, columns, rows, keyOf, parameters, set, empty }) {
  if (rows.length === 0) return h('p', { class: 'empty' }, empty)
  return h(
    'div',
    { class: 'scroll' },
    h(
      'table',
      { role: 'table' },
      h('caption', null, caption),
      h(
        'thead',
        { role: 'rowgroup' },
        h(
          'tr',
          { role: 'row' },
          columns.map((column) => head(column, parameters, set)),
        ),
      ),
      h(
        'tbody',
        { role: 'rowgroup' },
        rows.map((row) =>
          h(
            'tr',
            { role: 'row', key: keyOf(row) },
            columns.map((column, at) =>
              h(
                at === 0 ? 'th' : 'td',
                {
                  role: at === 0 ? 'rowheader' : 'cell',
                  ...(at === 0 ? { scope: 'row' } : {}),
                  class: column.isNumber ? 'number' : undefined,
                  'data-title': column.title,
                },
                h('div', null, column.cell(row)),
              ),
            ),
          ),
        ),
      ),
    ),
  )
}

function head({ title, sort, isNumber }, parameters, set) {
  const order = parameters?.sort ?? ''
  const isBy = sort !== undefined && order.replace(/^-/, '') === sort
  const isDown = order.startsWith('-')
  const next =
    isBy && isDown === (isNumber === true) ? (isDown ? sort : `-${sort}`) : isNumber ? `-${sort}` : sort
  return h(
    'th',
    {
      role: 'columnheader',
      scope: 'col',
      class: isNumber ? 'number' : undefined,
      'aria-sort': isBy ? (isDown ? 'descending' : 'ascending') : undefined,
    },
    sort === undefined
      ? title
      : h(
          'button',
          { type: 'button', on: { click: () => set({ sort: next, from: undefined }) } },
          title,
          h('span', { 'aria-hidden': 'true' }, isBy ? (isDown ? ' ↓' : ' ↑') : ''),
        ),
  )
}

/** A field that filters by words; `known`: completed with names of `datasets` or `nodes`. */
export function filterField({ id, label, known, parameters, set, name = 'filter', resets = 'from' }) {
  let timer
  return h(
    'p',
    { class: 'filter', key: `filter-${id}` },
    h('label', { for: id }, label),
    h('input', {
      id,
      type: 'search',
      list: known && `known-${known}`,
      autocomplete: 'off',
      spellcheck: 'false',
      maxlength: 200,
      value: parameters[name] ?? '',
      on: {
        input: ({ target }) => {
          clearTimeout(timer)
          timer = setTimeout(() => set({ [name]: target.value || undefined, [resets]: undefined }), 250)
        },
      },
    }),
  )
}

/** Says which rows are shown, and leads to the others. */
export function pager({ total, shown, parameters, set, noun, name = 'from', rows = PAGE_ROWS }) {
  const from = Number(parameters[name] ?? 0)
  const move = (to) => set({ [name]: to <= 0 ? undefined : String(to) })
  const step = (text, to, isOff) =>
    h('button', { type: 'button', disabled: isOff, on: { click: () => move(to) } }, text)
  const said =
    total === 0
      ? `no ${noun}`
      : `${noun} ${count(Math.min(from + 1, total))} to ${count(Math.min(from + shown, total))} of ${count(total)}`
  if (total <= rows && from === 0) return h('p', { class: 'pager' }, said)
  const last = Math.floor(Math.max(0, total - 1) / rows) * rows
  return h(
    'div',
    { class: 'pager', role: 'group', 'aria-label': `pages of ${noun}` },
    step('First', 0, from === 0),
    step('Previous', from - rows, from === 0),
    h('span', null, said),
    step('Next', from + rows, from + shown >= total),
    step('Last', last, from >= last),
  )
}

/** Leads on through a list whose length nobody knows. */
export function onward({ isLast, after, parameters, set, text }) {
  const isFirst = parameters.after === undefined
  if (isFirst && isLast) return null
  return h(
    'div',
    { class: 'pager', role: 'group', 'aria-label': 'pages' },
    isFirst
      ? null
      : h(
          'button',
          { type: 'button', key: 'first', on: { click: () => set({ after: undefined }) } },
          'First',
        ),
    isLast ? null : h('button', { type: 'button', key: 'onward', on: { click: () => set({ after }) } }, text),
  )
}

/** A link to another view. */
export function link(view, parameters, ...text) {
  const query = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== undefined))
  return h('a', { href: `#/${view}?${query}` }, ...text)
}
