import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { DSC } from '../testing/dsc-processes.js'
import { needsStrace } from '../testing/needs.js'
import { makeWorld, type World, writeTree } from '../testing/world.js'

const CALLS =
  'openat,fsync,fdatasync,syncfs,rename,renameat,renameat2,write,pwrite64,writev,pwritev,unlink,unlinkat,rmdir,ftruncate'
const run = promisify(execFile)
/** One system call; a call that others interleave with has begun at one line of the trace and ended at a later one. */
interface Call {
  readonly name: string
  /** Arguments as strace prints them, with the paths of descriptors. */
  readonly text: string
  readonly begin: number
  end: number
}

/** What a power cut can take is only known from the order in which the kernel was asked; strace sees it. */
async function trace(world: World, words: readonly string[]): Promise<readonly Call[]> {
  const output = join(world.directory, 'trace')
  const tracing = ['-f', '-y', '-s', '0', '-e', `trace=${CALLS}`, '-o', output]
  await run('strace', [...tracing, ...DSC, ...words], { cwd: world.directory })
  return parseTrace(readFileSync(output, 'utf8'))
}

function parseTrace(text: string): readonly Call[] {
  const calls: Call[] = []
  const unfinished = new Map<string, Call>()
  const opened = new Map<string, string>()
  for (const [index, found] of text.split('\n').entries()) {
    // A file in a folder that is held open is named by the folder's descriptor.
    const line = found.replace(/\/proc\/self\/fd\/(\d+)/g, (whole, fd) => opened.get(fd) ?? whole)
    const [, fd, path] = /openat.* = (\d+)<([^>]*)>$/.exec(line) ?? []
    if (fd !== undefined && path !== undefined) opened.set(fd, path)
    const [, thread = '', name, args = ''] = /^(\d+)\s+(\w+)\((.*)$/.exec(line) ?? []
    const resumed = /^(\d+)\s+<\.\.\. \w+ resumed>/.exec(line)
    if (resumed) {
      const call = unfinished.get(resumed[1]!)
      if (call) call.end = index
    } else if (name !== undefined) {
      const call = { name, text: args, begin: index, end: index }
      if (args.endsWith('<unfinished ...>')) unfinished.set(thread, call)
      calls.push(call)
    }
  }
  return calls
}

const isRename = ({ name }: Call) => name.startsWith('rename')
const isSync = ({ name }: Call) => name === 'fsync' || name === 'fdatasync'
const isWrite = ({ name }: Call) => /write|ftruncate/.test(name)
/** A durable commit of the record: its write-ahead log reaches the disk. */
const isCommit = (call: Call) => isSync(call) && /record\.db-wal>/.test(call.text)

function findRename(calls: readonly Call[], from: string, to: string): Call {
  const found = calls.filter(
    (call) => isRename(call) && call.text.includes(`"${from}`) && call.text.includes(`"${to}`),
  )
  assert.equal(found.length, 1, `renames from ${from} to ${to}`)
  return found[0]!
}

for (const { title, files } of [
  { title: 'few files', files: 3 },
  { title: 'many files', files: 70 },
]) {
  test(`publishing ${title}: contents reach the disk, then the name, then its folders, then the record says ready`, {
    skip: needsStrace(),
  }, async (context) => {
    const world = await makeLetters(context, files)
    const calls = await trace(world, ['prepare', 'letters', '--task', 'one'])
    const [{ directory }] = world.query<{ directory: string }>('SELECT directory FROM copies') as [
      { directory: string },
    ]
    const staging = join(world.root, 'staging')
    const publish = findRename(calls, staging, directory)
    const before = calls.filter(({ end }) => end < publish.begin)
    const written = new Map<string, Call>()
    for (const call of calls.filter(isWrite)) {
      const path = /<([^>]*)>/.exec(call.text)?.[1] ?? ''
      if (path.startsWith(staging) && !/-(wal|shm|journal)$/.test(path)) written.set(path, call)
    }
    assert.equal(written.size, files + 1, 'the files and the manifest are written in staging')
    for (const [path, last] of written) {
      assert.ok(last.end < publish.begin, `${path} is written after it was published`)
      const isFlushed = before.some(
        (call) =>
          call.begin > last.end &&
          (call.name === 'syncfs' || (isSync(call) && call.text.includes(`<${path}>`))),
      )
      assert.ok(isFlushed, `${path} is not flushed between its last write and the rename`)
    }
    if (files <= 64) {
      const flushed = before
        .filter(isSync)
        .map(({ text }) => text.slice(text.indexOf('<') + 1, text.indexOf('>')))
      const folders = flushed.filter((path) => /\/files(\/deep)?$/.test(path))
      assert.deepEqual(
        new Set(folders.map((path) => path.replace(/.*\/files/, 'files'))),
        new Set(['files', 'files/deep']),
      )
    }
    const folders = [join(world.root, 'copies', 'letters'), join(world.root, 'copies')].map((folder) =>
      calls.find((call) => isSync(call) && call.text.includes(`<${folder}>`) && call.begin > publish.end),
    )
    const ready = calls.find((call) => isCommit(call) && call.begin > publish.end)
    for (const folder of folders)
      assert.ok(folder && ready && folder.end < ready.begin, 'folders before the record')
  })
}

test('evicting: the record says so first, then the name goes, then the bytes, then the row', {
  skip: needsStrace(),
}, async (context) => {
  const world = await makeLetters(context, 3)
  await world.dsc('prepare', 'letters', '--task', 'one')
  await world.dsc('release', 'letters', '--task', 'one')
  const [{ directory }] = world.query<{ directory: string }>('SELECT directory FROM copies') as [
    { directory: string },
  ]
  const calls = await trace(world, ['evict', 'letters', '--yes', '--no-undo'])
  const discard = findRename(calls, directory, join(world.root, 'trash'))
  const removals = calls.filter(
    ({ name, text }) => /unlink|rmdir/.test(name) && text.includes('/trash/') && !text.includes('ENOENT'),
  )
  const commits = calls.filter(isCommit)
  assert.ok(removals.length > 3)
  assert.ok(commits[0] && commits[0].end < discard.begin, 'evicting is durable before the name goes')
  for (const removal of removals) assert.ok(removal.begin > discard.end)
  assert.ok(
    commits.some(({ begin }) => removals.every(({ end }) => end < begin)),
    'the row goes last',
  )
})

async function makeLetters(context: TestContext, files: number): Promise<World> {
  const world = await makeWorld(context, {})
  const source = join(world.directory, 'source')
  const names = Array.from({ length: files }, (_, index) => `${index % 2 === 0 ? '' : 'deep/'}${index}.txt`)
  await writeTree(source, Object.fromEntries(names.map((name) => [name, `letter ${name}`])))
  await world.configure({ datasets: { letters: { source: `file://${source}/` } } })
  return world
}
