import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findHubPage } from './source-url.js'

for (const [page, source] of [
  ['https://huggingface.co/org/model', 'hf://org/model'],
  ['https://huggingface.co/org/model/', 'hf://org/model'],
  ['https://hf.co/datasets/org/name/tree/main', 'hf://datasets/org/name'],
  ['https://huggingface.co/datasets/org/name/tree/v1/data/en?x=1#y', 'hf://datasets/org/name@v1/data/en'],
  ['https://huggingface.co/org/model/blob/main/w.bin', 'https://huggingface.co/org/model/resolve/main/w.bin'],
  ['http://hub.internal:8080/hf/org/model', 'hf://org/model'],
  ['https://huggingface.co/spaces/org/app', undefined],
  ['https://huggingface.co/org/model/resolve/main/w.bin', undefined],
  ['https://huggingface.co/docs/hub', undefined],
  ['https://example.org/org/model', undefined],
  ['hf://org/model', undefined],
] as const)
  test(`the page ${page} means ${source}`, () =>
    assert.equal(findHubPage(page, 'http://hub.internal:8080/hf'), source))
