import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Dataset, deriveDatasetName } from '../../model/dataset.js'
import { openExampleCache } from '../../testing/example-cache.js'
import { KnownCatalog } from './known-catalog.js'

const HUB = 'hf://org/gated'
const WEB = 'https://data.example.org/list.txt'
const STORE = 's3://private/data/'
const name = (named: string, source: string): Dataset => ({ name: named, source, include: [], exclude: [] })
const undeclared = (source: string) => name(deriveDatasetName(source), source)

for (const { what, added, declared, isAnonymous } of [
  { what: 'a repository that any user may have prepared', added: undeclared(HUB), isAnonymous: true },
  { what: 'a web page that any user may have prepared', added: undeclared(WEB), isAnonymous: true },
  { what: 'a URL that only an admin may prepare', added: undeclared(STORE), isAnonymous: false },
  { what: 'a repository that an admin added', added: name('gated', HUB), isAnonymous: false },
  {
    what: 'a prepared repository that dsc.yaml declares',
    added: undeclared(HUB),
    declared: undeclared(HUB),
    isAnonymous: false,
  },
] satisfies { added: Dataset; declared?: Dataset; [field: string]: unknown }[])
  test(`the gateway stages ${what} ${isAnonymous ? 'without' : 'with'} the node’s credentials`, async (t) => {
    const { cache } = await openExampleCache(t)
    await cache.record.saveDataset(added, cache.nowMs())
    const catalog = new KnownCatalog({ cache, declared: declared ? [declared] : [] })
    const { datasets } = await catalog.read()
    assert.deepEqual(
      datasets.map(({ source, anonymous = false }) => [source, anonymous]),
      [[added.source, isAnonymous]],
    )
  })
