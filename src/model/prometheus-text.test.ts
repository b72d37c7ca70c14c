import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatPrometheus } from './prometheus-text.js'

test('formatPrometheus writes each family under its type, labels quoted', () => {
  const text = formatPrometheus([
    {
      name: 'a_total',
      type: 'counter',
      help: 'how many',
      rows: [
        { labels: {}, value: 1 },
        { labels: { task: 'say "hi"\\\n' }, value: 2.5 },
      ],
    },
    { name: 'b', type: 'histogram', rows: [{ name: 'b_sum', labels: { node: '0', le: '1' }, value: 3 }] },
  ])
  assert.equal(
    text,
    '# HELP a_total how many\n# TYPE a_total counter\na_total 1\na_total{task="say \\"hi\\"\\\\\\n"} 2.5\n' +
      '# TYPE b histogram\nb_sum{node="0",le="1"} 3\n',
  )
})
