// Elements from descriptions: `h` describes, `patch` makes the document like it and keeps what is already so, with
// its focus. Text becomes text and nothing else: there is no way from here into the document's HTML.

const SVG = 'http://www.w3.org/2000/svg'
const SVG_TAGS = new Set(['svg', 'rect', 'line', 'polyline', 'polygon', 'pattern', 'defs', 'path'])
/** What could turn the direction of text or hide in it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what is looked for
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/**
 * Describes an element: `attributes` and, in `on`, its listeners; `key` tells it from its neighbours. `isOwn`: others fill
 * it, and its content stays.
 */
export function h(tag, attributes, ...children) {
  const { on = {}, key, isOwn = false, ...rest } = attributes ?? {}
  const kept = children.flat(Number.POSITIVE_INFINITY).filter((child) => child != null && child !== false)
  return { tag, attributes: rest, on, key, isOwn, children: kept }
}

/** A name that users gave, on its own in the direction of the text, without signs that nobody sees. */
export function name(text) {
  return h('bdi', null, visible(text))
}

/** A sentence with names in it, none of which wraps at its hyphens. */
export function sentence(text) {
  return h(
    'bdi',
    null,
    visible(text)
      .split(' ')
      .flatMap((word, at) => [
        at > 0 ? ' ' : '',
        word.includes('-') ? h('span', { class: 'word' }, word) : word,
      ]),
  )
}

/** The text with a mark in the place of each sign that nobody sees. */
export function visible(text) {
  return String(text).replace(HIDDEN, '\ufffd')
}

/** Makes the children of `parent` as they are described. */
export function patch(parent, descriptions) {
  const keyed = new Map()
  for (const child of parent.childNodes) if (child.dscKey !== undefined) keyed.set(child.dscKey, child)
  let next = parent.firstChild
  for (const wanted of [descriptions].flat(Number.POSITIVE_INFINITY)) {
    if (wanted == null || wanted === false) continue
    const found = wanted.key === undefined ? next : keyed.get(wanted.key)
    const isSame = found && isAlike(found, wanted)
    const element = isSame ? found : make(wanted)
    if (element !== next) parent.insertBefore(element, next)
    else next = next.nextSibling
    if (isSame) update(element, wanted)
  }
  while (next) {
    const gone = next
    next = next.nextSibling
    gone.remove()
  }
}

function isAlike(node, wanted) {
  if (typeof wanted !== 'object') return node.nodeType === Node.TEXT_NODE
  return node.dscTag === wanted.tag && node.dscKey === wanted.key
}

function make(wanted) {
  if (typeof wanted !== 'object') return document.createTextNode(String(wanted))
  const element = SVG_TAGS.has(wanted.tag)
    ? document.createElementNS(SVG, wanted.tag)
    : document.createElement(wanted.tag)
  element.dscTag = wanted.tag
  element.dscKey = wanted.key
  element.dscOn = {}
  update(element, wanted)
  return element
}

function update(element, wanted) {
  if (typeof wanted !== 'object') {
    if (element.data !== String(wanted)) element.data = String(wanted)
    return
  }
  for (const { name: had } of [...element.attributes]) {
    const value = wanted.attributes[had]
    // The size of a canvas and of what fills it belongs to its painter.
    if (wanted.isOwn && ['style', 'width', 'height'].includes(had)) continue
    if (value == null || value === false) element.removeAttribute(had)
  }
  for (const [attribute, value] of Object.entries(wanted.attributes)) {
    if (value == null || value === false) continue
    const text = value === true ? '' : String(value)
    if (element.getAttribute(attribute) !== text) element.setAttribute(attribute, text)
    // What somebody is typing stays.
    if (attribute === 'value' && document.activeElement !== element) element.value = text
  }
  for (const [kind, listener] of Object.entries(wanted.on)) {
    if (!(kind in element.dscOn)) element.addEventListener(kind, (event) => element.dscOn[kind](event))
    element.dscOn[kind] = listener
  }
  if (!wanted.isOwn) patch(element, wanted.children)
}
