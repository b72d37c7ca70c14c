import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLinkGood, MAX_LINK_MS, signLink } from './page-link.js'

const NOW_MS = Date.UTC(2026, 10, 23)
const TOKEN = 'a token of all agents'
const LINK = signLink(TOKEN, NOW_MS + 60_000)

test('a link has a pinned form: agents of two releases understand each other', () => {
  assert.equal(LINK, 'link:1795392060.oULbTmYmO62hY9V89pT86RX4-oFPDNHIamVaqsHQGEk')
})

for (const { name, link, tokens, nowMs, isGood } of [
  { name: 'opens until it ends', link: LINK, tokens: ['another token', TOKEN], nowMs: NOW_MS, isGood: true },
  { name: 'ends', link: LINK, tokens: [TOKEN], nowMs: NOW_MS + 60_000, isGood: false },
  {
    name: 'of another token opens nothing',
    link: LINK,
    tokens: ['another token'],
    nowMs: NOW_MS,
    isGood: false,
  },
  {
    name: 'cannot be made to last',
    link: LINK.replace('1795392060', '1795392999'),
    tokens: [TOKEN],
    nowMs: NOW_MS,
    isGood: false,
  },
  {
    name: 'of more than 30 days is refused',
    link: signLink(TOKEN, NOW_MS + MAX_LINK_MS + 1000),
    tokens: [TOKEN],
    nowMs: NOW_MS,
    isGood: false,
  },
  {
    name: 'without a signature is refused',
    link: 'link:1795392060.',
    tokens: [TOKEN],
    nowMs: NOW_MS,
    isGood: false,
  },
  {
    name: 'with an end that is not digits is refused',
    link: LINK.replace('1795392060', '1e12'),
    tokens: [TOKEN],
    nowMs: NOW_MS,
    isGood: false,
  },
]) {
  test(`a link ${name}`, () => assert.equal(isLinkGood(link, tokens, nowMs), isGood))
}
