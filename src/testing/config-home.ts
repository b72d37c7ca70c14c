import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { type LoadOptions, loadConfig } from '../config/load-config.js'
import { isDscError } from '../failure/dsc-error.js'

const root = mkdtempSync(join(tmpdir(), 'dsc-config-'))
after(() => rmSync(root, { recursive: true }))
let count = 0

/** A new home folder, a working folder in it, and dsc.yaml there if `yaml` is given. */
export function arrangeConfig(yaml?: string, more: Partial<LoadOptions> = {}) {
  count += 1
  const home = join(root, String(count))
  const work = join(home, 'project', 'deep')
  mkdirSync(work, { recursive: true })
  const file = join(work, 'dsc.yaml')
  if (yaml !== undefined) writeFileSync(file, yaml)
  const options: LoadOptions = {
    explicitPath: undefined,
    environment: {},
    workingDirectory: work,
    homeDirectory: home,
    hostName: 'gpu-07',
    ...more,
  }
  return { home, work, file, options }
}

/** The message of loadConfig for a configuration that it refuses with CONFIG_INVALID. */
export async function configFailureOf(options: LoadOptions): Promise<string> {
  const error = await loadConfig(options).then(
    () => assert.fail('expected CONFIG_INVALID'),
    (reason: unknown) => reason,
  )
  if (!isDscError(error, 'CONFIG_INVALID')) throw error
  return error.message
}
