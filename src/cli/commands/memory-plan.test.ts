import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const DSC = fileURLToPath(new URL('../../../bin/dsc.js', import.meta.url))
const PROFILE = fileURLToPath(new URL('../../../fixtures/memory/convnet.profile.json', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'dsc-memory-'))
after(() => rmSync(folder, { recursive: true }))

function dsc(...words: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [DSC, 'memory', ...words], {
    cwd: folder,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const small = ['--smallest', '16KiB']

test('a budget that no plan meets ends with exit code 6 and names the least feasible one, which works', () => {
  const refused = dsc('plan', PROFILE, '--budget', '10%', '--json', ...small)
  assert.equal(refused.status, 6)
  const { error } = JSON.parse(refused.stderr)
  assert.equal(error.code, 'PLAN_INFEASIBLE')
  const least = /--budget (\d+)/.exec(error.hint)![1]!
  assert.equal(dsc('plan', PROFILE, '--budget', least, ...small).status, 0)
  assert.equal(dsc('plan', PROFILE, '--budget', String(Number(least) - 1), ...small).status, 6)
})

test('a budget that only --smallest keeps out of reach says how much it left out, and what the least is without', () => {
  const words = ['plan', PROFILE, '--smallest', '4MiB', '--out', 'smallest.json']
  const refused = dsc(...words, '--budget', '60%')
  assert.equal(refused.status, 6)
  const [, bytes, count] = /, ([\d.]+ [KM]iB) of it in (\d+) idle storages below --smallest 4.00 MiB;/.exec(
    refused.stderr,
  )!
  assert.ok(Number(count) > 0 && Number.parseFloat(bytes!) > 0, refused.stderr)
  const least = /--smallest 1 needs (\d+) /.exec(refused.stderr)![1]!
  const free = ['plan', PROFILE, '--smallest', '1', '--out', 'smallest.json', '--budget']
  assert.equal(dsc(...free, least).status, 0)
  assert.equal(dsc(...free, String(Number(least) - 1)).status, 6)
})

test('ways compares keeping, recomputing and moving in text and JSON alike, and ends with 6 where nothing fits', () => {
  const { status, stdout, stderr } = dsc('ways', PROFILE, '--budget', '60%', ...small)
  assert.equal(status, 0, stderr)
  const ways = JSON.parse(dsc('ways', PROFILE, '--budget', '60%', '--json', ...small).stdout)
  for (const [name, way] of [
    ['keep everything', ways.keepAll],
    ['move only', ways.moveOnly],
    ['chosen by block', ways.best],
  ])
    assert.match(stdout, new RegExp(`${name}.* ${way.stepMs.toFixed(1)} `))
  assert.match(stdout, /keep everything.*over the budget/)
  const refused = dsc('ways', PROFILE, '--budget', '1%', ...small)
  assert.equal(refused.status, 6)
  assert.match(refused.stderr, /no mixture for .* fits .* needs \d+ /)
  const kept = dsc('ways', PROFILE, '--budget', '60%', '--smallest', '4MiB')
  assert.equal(kept.status, 6)
  assert.match(
    kept.stderr,
    /no mixture .*, 11\.00 MiB of it in 15 idle storages below --smallest 4\.00 MiB; --smallest 1 needs \d+ /,
  )
  assert.match(kept.stderr, /try: --smallest 1, or something between/)
})

for (const [option, name] of [
  ['--out', 'train.py'],
  ['--svg', 'notes.txt'],
] as const) {
  test(`${option} never replaces a file that is no earlier result`, () => {
    writeFileSync(join(folder, name), 'import torch\n')
    const refused = dsc('plan', PROFILE, '--budget', '60%', option, name, ...small)
    assert.equal(refused.status, 2, refused.stderr)
    assert.match(refused.stderr, new RegExp(`${name} exists`))
    assert.equal(readFileSync(join(folder, name), 'utf8'), 'import torch\n')
  })
}

test('a plan is written, twice the same, explained, drawn and simulated', () => {
  const one = dsc('plan', PROFILE, '--budget', '55%', '--out', 'one.json', '--svg', 'step.svg', ...small)
  assert.equal(one.status, 0, one.stderr)
  assert.match(one.stdout, /storages move/)
  dsc('plan', PROFILE, '--budget', '55%', '--out', 'two.json', ...small)
  assert.equal(readFileSync(join(folder, 'one.json'), 'utf8'), readFileSync(join(folder, 'two.json'), 'utf8'))
  assert.match(readFileSync(join(folder, 'step.svg'), 'utf8'), /^<svg [\s\S]*<\/svg>\n$/)
  const why = dsc('explain', 'one.json', '--profile', PROFILE, '--json')
  const { tensors } = JSON.parse(why.stdout) as { tensors: { decision: string; why: string }[] }
  assert.ok(tensors.every((row) => row.why.length > 0))
  assert.deepEqual([...new Set(tensors.map(({ decision }) => decision))].sort(), ['moves', 'stays'])
  const slow = ['--slow-copies', '10', '--fail-every', '2']
  assert.equal(dsc('simulate', 'one.json', '--profile', PROFILE, ...slow).status, 0)
})

test('a device smaller than the budget breaks the plan: exit code 10', () => {
  dsc('plan', PROFILE, '--budget', '55%', '--out', 'one.json', ...small)
  const broken = dsc('simulate', 'one.json', '--profile', PROFILE, '--capacity', '6MiB')
  assert.equal(broken.status, 10)
  assert.match(broken.stderr, /bytes of 6291456/)
})

test('nothing that moves is said aloud', () => {
  const fits = dsc('plan', PROFILE, '--budget', '1TiB', '--out', 'roomy.json')
  assert.match(fits.stdout, /nothing needs to move, 0 bytes/)
})

test('a plan of another profile, a broken profile and a strange budget are refused by name', () => {
  dsc('plan', PROFILE, '--budget', '55%', '--out', 'one.json', ...small)
  const profile = JSON.parse(readFileSync(PROFILE, 'utf8'))
  profile.tensors[0].producer.layer = 999
  writeFileSync(join(folder, 'broken.json'), JSON.stringify(profile))
  const broken = dsc('plan', 'broken.json', '--budget', '55%')
  assert.equal(broken.status, 2)
  assert.match(broken.stderr, /refers to layer 999/)
  profile.tensors[0].producer.layer = 0
  writeFileSync(join(folder, 'other.json'), JSON.stringify(profile))
  const other = dsc('explain', 'one.json', '--profile', 'other.json')
  assert.equal(other.status, 2)
  assert.match(other.stderr, /was planned from the profile/)
  assert.equal(dsc('plan', PROFILE, '--budget', 'much').status, 2)
})

test('a run that differs from its plan is shown line by line: exit code 10', () => {
  dsc('plan', PROFILE, '--budget', '55%', '--out', 'one.json', ...small)
  const plan = JSON.parse(readFileSync(join(folder, 'one.json'), 'utf8'))
  const run = {
    v: 1,
    kind: 'dsc.mem.run',
    plan: plan.profile,
    steps: 10,
    plannedSteps: 10,
    planMisses: 0,
    peakBytes: plan.predicted.peakBytes,
    stepMs: 5,
    stallMs: 0,
    movedBytes: 10 * plan.predicted.movedBytes,
    hostBytes: 0,
    leftReferences: 0,
    device: 'cpu',
    lateness: [],
  }
  writeFileSync(join(folder, 'run.json'), JSON.stringify(run))
  assert.equal(dsc('verify', 'run.json', '--plan', 'one.json').status, 0)
  for (const change of [
    { peakBytes: 1.06 * plan.predicted.peakBytes },
    { leftReferences: 1 },
    { planMisses: 1 },
    { movedBytes: 0 },
  ]) {
    writeFileSync(join(folder, 'run.json'), JSON.stringify({ ...run, ...change }))
    const differs = dsc('verify', 'run.json', '--plan', 'one.json')
    assert.equal(differs.status, 10, JSON.stringify(change))
    assert.match(differs.stdout, /DIFFERS/)
  }
})

test('what a user gets wrong is named: which file or option, what was expected, what was found', () => {
  dsc('plan', PROFILE, '--budget', '55%', '--out', 'good.json', ...small)
  const plan = JSON.parse(readFileSync(join(folder, 'good.json'), 'utf8'))
  const write = (name: string, value: unknown) => writeFileSync(join(folder, name), JSON.stringify(value))
  write('header.json', { v: 2, kind: 'dsc.mem.plan' })
  write('far.json', { ...plan, moves: [{ ...plan.moves[0], inAt: 9999 }] })
  writeFileSync(join(folder, 'torn.json'), '{"v":1')
  const of = ['--profile', PROFILE]
  for (const { words, status, says } of [
    {
      words: ['explain', 'absent.json', ...of],
      status: 2,
      says: /cannot read the plan absent.json: there is no/,
    },
    { words: ['explain', 'torn.json', ...of], status: 2, says: /the plan torn.json is not JSON/ },
    {
      words: ['explain', 'header.json', ...of],
      status: 2,
      says: /header.json is not a plan.*: profile: .*expected string/,
    },
    {
      words: ['simulate', 'far.json', ...of],
      status: 2,
      says: /moves.0: expected .* up to \d+, .*inAt 9999/,
    },
    {
      words: ['simulate', 'good.json', ...of, '--slow-copies', '-1'],
      status: 2,
      says: /--slow-copies .*expected a number above 0, found "-1"/,
    },
    {
      words: ['simulate', 'good.json', ...of, '--fail-every', '1.5'],
      status: 2,
      says: /--fail-every .*expected a whole number of 1 or more, found "1.5"/,
    },
    { words: ['simulate', 'good.json', ...of, '--capacity', '10%'], status: 10, says: /breaks \d+ promises/ },
    {
      words: ['simulate', 'good.json', ...of, '--capacity', 'much'],
      status: 2,
      says: /--capacity much is neither/,
    },
    {
      words: ['verify', 'good.json', '--plan', 'good.json'],
      status: 2,
      says: /not a run report of version 1: v: .*expected 1/,
    },
    {
      words: ['explain', 'good.json', ...of, '--svg', 'no/x.svg'],
      status: 2,
      says: /cannot write the picture no\/x.svg/,
    },
    {
      words: ['plan', PROFILE, '--budget', '50%', '--smallest', '1%'],
      status: 2,
      says: /--smallest 1% is not a size/,
    },
    { words: ['profile', '--', 'true'], status: 2, says: /true ended before it called backward/ },
  ]) {
    const done = dsc(...words)
    assert.match(done.stderr, says)
    assert.equal(done.status, status, done.stderr)
    assert.match(done.stderr, /\n {2}try: /, 'no hint')
  }
})

test('a command to profile that is not there is refused by name, with what to look at', () => {
  const { status, stderr } = dsc('profile', '--', 'nosuchcommand')
  assert.equal(status, 127)
  assert.equal(stderr, 'dsc: cannot run nosuchcommand: no such command\n  try: check the word after --\n')
})

test('explain --recipes names the best under a budget, and recipes that would do nothing', () => {
  const { status, stdout, stderr } = dsc('explain', '--recipes', '--profile', PROFILE, '--budget', '80%')
  assert.equal(status, 0, stderr)
  assert.match(stdout, /keep everything .* over the budget/)
  assert.match(
    stdout,
    /checkpoint\(\) around blocks: 0 bytes moved, 0 bytes freed: no part of the model can run again/,
  )
  assert.match(stdout, /best: dsc memory plan --recompute/)
  assert.match(dsc('explain', '--recipes', '--profile', PROFILE).stdout, /best: train as it is/)
  assert.match(dsc('explain', '--recipes', '--profile', PROFILE, '--budget', '1%').stdout, /best: none fits/)
  const neither = dsc('explain', '--profile', PROFILE)
  assert.equal(neither.status, 2)
  assert.match(neither.stderr, /try: dsc memory explain --recipes --profile/)
})
