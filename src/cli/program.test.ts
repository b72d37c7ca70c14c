import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGlobalOptions } from './program.js'

for (const { argv, configPath, isJson } of [
  { argv: ['prepare', 'flowers'], configPath: undefined, isJson: false },
  { argv: ['--config', 'a.yaml', 'prepare', 'flowers'], configPath: 'a.yaml', isJson: false },
  { argv: ['prepare', 'flowers', '--config=a.yaml', '--json'], configPath: 'a.yaml', isJson: true },
]) {
  test(`readGlobalOptions reads \`dsc ${argv.join(' ')}\``, () => {
    const globals = readGlobalOptions(argv)
    assert.equal(globals.configPath, configPath)
    assert.equal(globals.isJson, isJson)
  })
}
