import assert from 'node:assert/strict'
import { test } from 'node:test'
import { findVerb, readGlobalOptions } from './program.js'

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

for (const { argv, verb } of [
  { argv: ['status', '--json'], verb: 'status' },
  { argv: ['--json', 'status'], verb: 'status' },
  { argv: ['--config', 'config', 'status'], verb: 'status' },
  { argv: ['--log-file', 'report', '-q', 'status'], verb: 'status' },
  { argv: ['--config=config', 'status'], verb: 'status' },
  { argv: ['frobnicate', 'status'], verb: undefined },
  { argv: ['--config', 'status'], verb: undefined },
]) {
  test(`findVerb finds ${verb} in \`dsc ${argv.join(' ')}\``, () => {
    assert.equal(findVerb(argv), verb)
  })
}
