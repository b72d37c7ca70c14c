import assert from 'node:assert/strict'
import { test } from 'node:test'
import { judgeBrokenLink } from './broken-link.js'

for (const { name, forMs, isOtherEndHeard, verdict } of [
  {
    name: 'waits for a line that may close, though last words came',
    forMs: 499,
    isOtherEndHeard: true,
    verdict: 'wait',
  },
  { name: 'blames the link when both ends speak', forMs: 500, isOtherEndHeard: true, verdict: 'link' },
  { name: 'waits for a heartbeat of the other end', forMs: 1999, isOtherEndHeard: false, verdict: 'wait' },
  { name: 'blames an end that stays silent', forMs: 2000, isOtherEndHeard: false, verdict: 'rank' },
]) {
  test(`judgeBrokenLink ${name}`, () => assert.equal(judgeBrokenLink({ forMs, isOtherEndHeard }), verdict))
}
