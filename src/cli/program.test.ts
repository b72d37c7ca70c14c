import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGlobalOptions } from './global-options.js'
import { goesThroughDoor } from './program.js'
import { findVerb, readVerbWords, rejectUnknownVerb, VIEWS } from './verb-words.js'
import { VERBS } from './verbs.js'

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

for (const { argv, own, note } of [
  { argv: ['ls'], own: ['status'], note: 'dsc: `dsc ls` is called `dsc status`' },
  {
    argv: ['-q', 'get', 'flowers'],
    own: ['-q', 'prepare', 'flowers'],
    note: 'dsc: `dsc get` is called `dsc prepare`',
  },
  { argv: ['version'], own: ['--version'], note: 'dsc: `dsc version` is called `dsc --version`' },
  {
    argv: ['logs', 'flowers'],
    own: ['history', 'flowers'],
    note: 'dsc: `dsc logs` is called `dsc status --history`',
  },
  { argv: ['status', '--json', '--leases'], own: ['leases', '--json'], note: undefined },
  { argv: ['lock', 'flowers', '--off'], own: ['unlock', 'flowers'], note: undefined },
  {
    argv: ['report', '--receipt', '4711', '--verify'],
    own: ['receipt', '4711', '--verify'],
    note: undefined,
  },
  { argv: ['report', '--receipt=4711', '-q'], own: ['receipt', '4711', '-q'], note: undefined },
  {
    argv: ['lock', '--reason', 'ls', 'flowers'],
    own: ['lock', '--reason', 'ls', 'flowers'],
    note: undefined,
  },
  { argv: ['constructor'], own: ['constructor'], note: undefined },
  { argv: [], own: [], note: undefined },
]) {
  test(`\`dsc ${argv.join(' ')}\` is \`dsc ${own.join(' ')}\``, () => {
    assert.deepEqual(readVerbWords(argv), { argv: own, note })
  })
}

for (const { argv, message, hint } of [
  { argv: ['statsu'], message: 'unknown command "statsu". Did you mean status?', hint: 'dsc status' },
  {
    argv: ['-q', 'delete', 'flowers'],
    message: 'unknown command "delete". Did you mean evict?',
    hint: 'dsc -q evict flowers',
  },
  { argv: ['rnu', 'a'], message: 'unknown command "rnu". Did you mean run?', hint: 'dsc run a' },
  { argv: ['frobnicate'], message: 'unknown command "frobnicate"', hint: 'dsc --help' },
  { argv: ['constructor'], message: 'unknown command "constructor"', hint: 'dsc --help' },
]) {
  test(`\`dsc ${argv.join(' ')}\` is refused with what was meant`, () => {
    assert.throws(() => rejectUnknownVerb(argv), { code: 'USAGE', message, hint })
  })
}

test('a view and the verb that leads to it exist, and only the latter is listed', () => {
  const isListed = (verb: string) => VERBS.find(({ name }) => name === verb)!.group !== undefined
  for (const { verb, name } of VIEWS) assert.deepEqual([isListed(verb), isListed(name)], [true, false])
})

for (const { argv, isAtDoor } of [
  { argv: ['cleanup'], isAtDoor: true },
  { argv: ['--json', 'cleanup', '--print-cron'], isAtDoor: false },
  { argv: ['run', 'flowers', '--', 'backup', '--print-cron'], isAtDoor: true },
  { argv: ['agent'], isAtDoor: false },
])
  test(`\`dsc ${argv.join(' ')}\` ${isAtDoor ? 'asks the service' : 'is done in this process'}`, () => {
    assert.equal(goesThroughDoor(argv), isAtDoor)
  })
