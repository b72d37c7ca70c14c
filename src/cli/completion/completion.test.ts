import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { Argument, Command, Option } from 'commander'
import { needs, needsTerminal } from '../../testing/needs.js'
import { formatBashCompletion } from './bash.js'
import { describeCommands } from './command-spec.js'
import { formatFishCompletion } from './fish.js'
import { formatZshCompletion } from './zsh.js'

// Asks real shells, with a `dsc` on their PATH that knows two datasets and notes its arguments.
const root = mkdtempSync(join(tmpdir(), 'dsc-completion-'))
after(() => rmSync(root, { recursive: true }))
const called = join(root, 'called')
mkdirSync(join(root, 'a-folder'))
writeFileSync(join(root, 'a-file'), '')
writeFileSync(
  join(root, 'dsc'),
  `#!/bin/sh\ncase "$*" in 'completion --list datasets') printf 'flowers\\nimages.v2\\n';; 'completion --list '*) echo "some-$3";; *) echo "$*" > ${called}.part && mv ${called}.part ${called};; esac\n`,
)
chmodSync(join(root, 'dsc'), 0o755)
const environment = { PATH: `${root}:${process.env.PATH}`, HOME: root, TERM: 'dumb', LC_ALL: 'C' }

const specs = describeCommands(
  new Command('dsc')
    .option('--config <file>', 'configuration: the file')
    .addCommand(
      new Command('prepare')
        .description("stage it; don't wait")
        .argument('<dataset>')
        .option('--task <id>', 'the task')
        .option('--node <node>', 'the node')
        .option('-q, --quiet', 'no progress'),
    )
    .addCommand(
      new Command('dataset')
        .addCommand(new Command('add').argument('<name>'))
        .addCommand(new Command('show').argument('<dataset>')),
    )
    .addCommand(
      new Command('release').option('--task <task>', 'the task').option('--lease <lease>', 'the lease'),
    )
    .addCommand(new Command('adopt').argument('<dir>'))
    .addCommand(new Command('run').argument('<dataset...>'))
    .addCommand(
      new Command('completion')
        .addArgument(new Argument('[shell]').choices(['bash', 'zsh']))
        .addOption(new Option('--color <when>').choices(['always', 'never'])),
    ),
)

const ROWS: readonly { readonly words: readonly string[]; readonly offered: readonly string[] }[] = [
  { words: [''], offered: ['adopt', 'completion', 'dataset', 'prepare', 'release', 'run'] },
  { words: ['pre'], offered: ['prepare'] },
  { words: ['prepare', ''], offered: ['flowers', 'images.v2'] },
  { words: ['--config', 'prepare', 'pre'], offered: ['prepare'] },
  { words: ['--config', 'x.yaml', 'prepare', 'fl'], offered: ['flowers'] },
  { words: ['prepare', '--task', 'x', 'fl'], offered: ['flowers'] },
  { words: ['prepare', '--ta'], offered: ['--task'] },
  { words: ['dataset', ''], offered: ['add', 'show'] },
  { words: ['dataset', 'show', 'im'], offered: ['images.v2'] },
  { words: ['dataset', 'add', 'fl'], offered: [] },
  { words: ['completion', ''], offered: ['bash', 'zsh'] },
  { words: ['completion', '--color', 'a'], offered: ['always'] },
  { words: ['prepare', '--task', 'fl'], offered: [] },
  { words: ['prepare', '--node', 'so'], offered: ['some-nodes'] },
  { words: ['release', '--task', ''], offered: ['some-tasks'] },
  { words: ['release', '--lease', 'some'], offered: ['some-leases'] },
]

test('bash offers verbs, options, datasets and choices', async (t) => {
  const script = join(root, 'completion.bash')
  writeFileSync(script, formatBashCompletion(specs))
  for (const { words, offered } of ROWS) {
    await t.test(`dsc ${words.join(' ')}`, () => {
      const quoted = words.map((word) => `'${word}'`).join(' ')
      const line = `. ${script}; COMP_WORDS=(dsc ${quoted}); COMP_CWORD=${words.length}; _dsc; printf '%s\\n' "\${COMPREPLY[@]}"`
      const shell = spawnSync('bash', ['--norc', '-c', line], {
        env: environment,
        encoding: 'utf8',
        cwd: root,
      })
      assert.equal(shell.stderr, '')
      assert.deepEqual(shell.stdout.split('\n').filter(Boolean).toSorted(), offered)
    })
  }
})

test('fish offers verbs, options, datasets and choices', { skip: needs('fish', 'fish') }, async (t) => {
  const script = join(root, 'completion.fish')
  writeFileSync(script, formatFishCompletion(specs))
  const files = [
    { words: ['adopt', 'a-'], offered: ['a-folder/'] },
    { words: ['--config', 'a-'], offered: ['a-file', 'a-folder/'] },
    { words: ['run', 'flowers', '--', 'a-'], offered: ['a-file', 'a-folder/'] },
  ]
  for (const { words, offered } of [...ROWS, ...files]) {
    await t.test(`dsc ${words.join(' ')}`, () => {
      const line = `source ${script}; complete -C 'dsc ${words.join(' ')}'`
      const shell = spawnSync('fish', ['--no-config', '-c', line], {
        env: environment,
        encoding: 'utf8',
        cwd: root,
      })
      assert.equal(shell.stderr, '')
      const candidates = shell.stdout.split('\n').map((row) => row.split('\t')[0]!)
      assert.deepEqual(candidates.filter(Boolean).toSorted(), offered)
    })
  }
})

test('zsh completes what is typed, at a real terminal', {
  skip: needs('zsh', 'zsh') || needsTerminal(),
  timeout: 60_000,
}, async (t) => {
  const script = join(root, 'completion.zsh')
  writeFileSync(script, formatZshCompletion(specs))
  const shell = spawn('script', ['-qfec', 'zsh -f -i', '/dev/null'], { env: environment, cwd: root })
  let screen = ''
  shell.stdout.on('data', (chunk: Buffer) => {
    screen += chunk.toString()
  })
  const waitFor = async (isThere: () => boolean) => {
    while (!isThere()) await setTimeout(10)
  }
  const countReady = () => screen.split('READY#').length
  t.after(() => shell.kill('SIGKILL'))
  shell.stdin.write(`PS1='READY''#'; autoload -Uz compinit; compinit -D -u; . ${script}\n`)
  await waitFor(() => countReady() > 1)
  for (const [typed, expected] of [
    ['dsc prep\t', 'prepare'],
    ['dsc prepare fl\t', 'prepare flowers'],
    ['dsc prepare --ta\tx im\t', 'prepare --task x images.v2'],
    ['dsc --config x dataset sh\tfl\t', '--config x dataset show flowers'],
    ['dsc completion z\t', 'completion zsh'],
    ['dsc release --task so\t', 'release --task some-tasks'],
    ['dsc completion --color n\t', 'completion --color never'],
    ['dsc adopt a-\t', 'adopt a-folder'],
    ['dsc run flowers -- a-fi\t', 'run flowers -- a-file'],
  ] as const) {
    await t.test(JSON.stringify(typed), async () => {
      rmSync(called, { force: true })
      const before = countReady()
      shell.stdin.write(`${typed}\n`)
      await waitFor(() => countReady() > before && existsSync(called))
      assert.equal(readFileSync(called, 'utf8').trim(), expected)
    })
  }
  shell.stdin.end('exit\n')
})
