import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ASCII_GLYPHS, UNICODE_GLYPHS } from '../../tui/view/text/glyphs.js'
import { fitProgress } from './fit-progress.js'

const LINE = 'flowers: 1.0 GiB of 4.0 GiB, 80 MiB/s, 38s left, 1,000/4,000 files, from gpu-02'

for (const { name, line = LINE, doneRatio, width, glyphs = UNICODE_GLYPHS, fitted } of [
  {
    name: 'shows all where there is room, with a bar of at most 40 cells',
    doneRatio: 0.25,
    width: 160,
    fitted: `${'█'.repeat(10)}${'░'.repeat(30)}  25 % ${LINE}`,
  },
  {
    name: 'leaves out the last facts first',
    doneRatio: 0.25,
    width: 80,
    fitted: `${'█'.repeat(6)}▌${'░'.repeat(19)}  25 % flowers: 1.0 GiB of 4.0 GiB, 80 MiB/s, 38s left`,
  },
  {
    name: 'is ASCII where the terminal wants it',
    line: 'flowers: 1 GiB of 2 GiB',
    doneRatio: 0.5,
    width: 40,
    glyphs: ASCII_GLYPHS,
    fitted: '#####.....  50 % flowers: 1 GiB of 2 GiB',
  },
  { name: 'cuts what is too long even so', doneRatio: 1, width: 12, fitted: '100 % flower' },
  {
    name: 'has no bar where nobody knows how much there is',
    doneRatio: undefined,
    width: 9,
    fitted: 'flowers: ',
  },
]) {
  test(`fitProgress ${name}`, () => {
    const found = fitProgress(line, { doneRatio, width, glyphs })
    assert.equal(found, fitted)
    assert.ok(found.length <= width)
  })
}
