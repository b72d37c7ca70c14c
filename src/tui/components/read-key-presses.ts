import type { Key } from 'ink'
import type { KeyPress } from '../view/keys/key-press.js'

const NAMED = [
  ['upArrow', 'up'],
  ['downArrow', 'down'],
  ['leftArrow', 'left'],
  ['rightArrow', 'right'],
  ['pageUp', 'page-up'],
  ['pageDown', 'page-down'],
  ['home', 'home'],
  ['end', 'end'],
  ['return', 'enter'],
  ['escape', 'escape'],
  ['backspace', 'backspace'],
  ['delete', 'backspace'],
] as const

/** Translates ink's input into the keys of the screen. Pasted text becomes one key press per character. */
export function readKeyPresses(input: string, key: Key): readonly KeyPress[] {
  for (const [flag, name] of NAMED) if (key[flag]) return [{ name, text: '' }]
  if (key.tab) return [{ name: key.shift ? 'shift-tab' : 'tab', text: '' }]
  if (key.ctrl) {
    if (input === 'c' || input === 'u' || input === 'z') return [{ name: `ctrl-${input}`, text: '' }]
    return []
  }
  if (key.meta) return []
  return [...input].flatMap((character): KeyPress[] => {
    if (character === '\r' || character === '\n') return [{ name: 'enter', text: '' }]
    return character < ' ' || character === '\u007f' ? [] : [{ name: 'text', text: character }]
  })
}
