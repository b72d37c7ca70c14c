import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findNextPage } from './next-page.js'

const CURRENT = 'https://mirror.example/hf/api/models/org/m/tree/abc?recursive=true&expand=false'
const PLACE = { endpoint: 'https://mirror.example/hf', current: CURRENT }
const NEXT = 'https://mirror.example/hf/api/models/org/m/tree/abc?cursor=2'

for (const [what, link, next] of [
  ['none', undefined, undefined],
  ['an empty header', '', undefined],
  ['the own address', `<${NEXT}>; rel="next"`, NEXT],
  [
    'the hub behind a mirror',
    '<https://huggingface.co/api/models/org/m/tree/abc?cursor=2>; rel="next"',
    NEXT,
  ],
  ['another scheme', `<${NEXT.replace('https', 'http')}>; rel="next"`, NEXT],
  ['another port', '<https://mirror.example:8443/hf/api/models/org/m/tree/abc?cursor=2>;rel=next', NEXT],
  ['a path', '</api/models/org/m/tree/abc?cursor=2>; rel="next"', NEXT],
  ['a query', '<?cursor=2>; rel="next"', NEXT],
  ['single quotes', `<${NEXT}>; rel='next'`, NEXT],
  ['capitals', `<${NEXT}>; REL="Next"`, NEXT],
  ['other parameters', `<${NEXT}>; title="a, \\"b\\"; c"; rel="next last"; type=x`, NEXT],
  ['the second of several', `<https://mirror.example/first>; rel="first", <${NEXT}>; rel="next"`, NEXT],
  ['others only', '<https://mirror.example/first>; rel="first", </x>; rel=nextish', undefined],
] as const)
  test(`findNextPage reads ${what}`, () => assert.equal(findNextPage(link, PLACE), next))

for (const link of [
  `${NEXT}; rel="next"`,
  `<${NEXT}; rel="next"`,
  `<${NEXT}>; rel="next`,
  `<https://[x>; rel="next"`,
])
  test(`findNextPage takes ${link} for no end`, () =>
    assert.throws(() => findNextPage(link, PLACE), RangeError))
