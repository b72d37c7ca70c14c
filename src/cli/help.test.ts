import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CommandUnknownOpts as Command } from 'commander'
import type { CliContext } from './context.js'
import { describeOption, loadProgram } from './program.js'
import { QUIET_OPTIONS } from './quiet-options.js'

const program = await loadProgram({} as CliContext)

function* listCommands(command: Command, path = 'dsc'): Generator<readonly [string, Command]> {
  yield [path, command]
  for (const child of command.commands) yield* listCommands(child, `${path} ${child.name()}`)
}

for (const [path, command] of listCommands(program)) {
  test(`${path} --help shows examples that begin with it`, () => {
    let text = ''
    command
      .configureOutput({
        writeOut: (part) => {
          text += part
        },
      })
      .outputHelp()
    const examples = text.split(/^Examples?:$/m)[1]
    assert.ok(examples?.includes(path), `no example in:\n${text}`)
  })

  for (const option of command.options) {
    if (option.defaultValue === undefined || typeof option.defaultValue === 'boolean') continue
    test(`${path} ${option.long} prints a default that it would understand`, () => {
      const text = / \((?:.*, )?default: (.*)\)$/.exec(describeOption(option))?.[1]
      assert.ok(text !== undefined && !/[{}[\]"]/.test(text), text)
      const words = text.split(' ')[0]!
      const parsed: unknown = option.parseArg ? option.parseArg(words, undefined) : words
      assert.deepEqual(parsed, option.defaultValue)
    })
  }
}

test('dsc --help is one screen: every listed verb on a line of its own', () => {
  const lines = program.helpInformation().split('\n')
  assert.ok(lines.length <= 40, `${lines.length} lines`)
  assert.deepEqual(
    lines.filter((line) => line.length > 80 || line.startsWith('    ')),
    [],
  )
})

/** The options that a help lists: without those of every command. */
function* listShown(root: Command): Generator<string> {
  const shared = new Set(root.options.map(({ long }) => long))
  for (const [path, { options }] of listCommands(root))
    for (const { long, hidden } of path === 'dsc' ? [] : options)
      if (!hidden && !shared.has(long)) yield `${path} ${long}`
}

test('help leaves out the options for tests, tuning and papers; help --all has every one', async () => {
  const all = await loadProgram({} as CliContext, { showsQuiet: true })
  const shown = new Set(listShown(program))
  const quiet = [...listShown(all)].filter((option) => !shown.has(option))
  const told = Object.entries(QUIET_OPTIONS).flatMap(([path, names]) =>
    names.map((name) => `dsc ${path} ${name}`),
  )
  assert.deepEqual(quiet.toSorted(), told.toSorted())
  assert.ok(shown.size <= 187, `${shown.size} options to learn`)
})
