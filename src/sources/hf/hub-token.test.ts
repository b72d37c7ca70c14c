import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { isDscError } from '../../failure/dsc-error.js'
import { temporaryDirectory } from '../../testing/temporary-directory.js'
import { findHubToken } from './hub-token.js'

test('findHubToken looks where the hub’s own clients do, in their order', async (t) => {
  const home = await temporaryDirectory(t)
  const write = (path: string, text: string) => {
    mkdirSync(join(home, path, '..'), { recursive: true })
    writeFileSync(join(home, path), text)
    return join(home, path)
  }
  assert.equal(await findHubToken({}, home), undefined)
  write('.cache/huggingface/token', 'of-the-login\n')
  write('xdg/huggingface/token', 'of-xdg')
  write('hf/token', ' of-hf-home\r\n')
  const named = write('secrets/token', 'of-a-file\n')
  const empty = write('secrets/empty', '\n')
  for (const [environment, token] of [
    [{}, 'of-the-login'],
    [{ XDG_CACHE_HOME: join(home, 'xdg') }, 'of-xdg'],
    [{ HF_HOME: join(home, 'hf') }, 'of-hf-home'],
    [{ HF_HOME: join(home, 'hf'), HF_TOKEN_PATH: named }, 'of-a-file'],
    [{ HF_TOKEN_PATH: named, HUGGING_FACE_HUB_TOKEN: 'of-old-scripts' }, 'of-old-scripts'],
    [{ HF_TOKEN_PATH: named, HUGGING_FACE_HUB_TOKEN: 'x', HF_TOKEN: 'of-the-job\n' }, 'of-the-job'],
    [{ HF_TOKEN: ' ', HF_TOKEN_PATH: named }, 'of-a-file'],
    [{ HF_TOKEN_PATH: empty }, undefined],
    [{ HF_HOME: join(home, 'none') }, undefined],
  ] as const)
    assert.equal(await findHubToken(environment, home), token, JSON.stringify(environment))
})

test('findHubToken names a file of a token that is not there', async (t) => {
  const home = await temporaryDirectory(t)
  const path = join(home, 'none')
  await assert.rejects(findHubToken({ HF_TOKEN_PATH: path }, home), (error) => {
    assert.ok(isDscError(error, 'CONFIG_INVALID'))
    return error.message.includes(path)
  })
})

test('findHubToken names the variable or file of a token that no header can carry, and shows nothing of it', async (t) => {
  const home = await temporaryDirectory(t)
  const path = join(home, 'token')
  writeFileSync(path, 'hf_hush…')
  for (const [environment, place] of [
    [{ HF_TOKEN: 'hf_hush…', HF_TOKEN_PATH: path }, 'HF_TOKEN'],
    [{ HUGGING_FACE_HUB_TOKEN: 'hf_hush…' }, 'HUGGING_FACE_HUB_TOKEN'],
    [{ HF_TOKEN_PATH: path }, path],
    [{ HF_HOME: home }, path],
  ] as const)
    await assert.rejects(findHubToken(environment, home), {
      code: 'CONFIG_INVALID',
      message: `${place} has U+2026 as character 8 of 8, and only printable ASCII can be sent`,
    })
})
