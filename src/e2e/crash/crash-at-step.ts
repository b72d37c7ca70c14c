import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import Database from 'better-sqlite3'
import pg from 'pg'
import { nameOfCommit, nameOfPath } from './step-names.js'

/**
 * Loaded into a dsc process before its own code (`node --import`): notices everything that it persists, as a named
 * step. CRASH_TRACE names a file that gets a line for each; CRASH_AT=`moment:times:step` kills the process with
 * SIGKILL `before` or `after` the step, or `during` it, when it comes for the so manieth time.
 */
const [moment, times, wanted] = splitOnce(process.env.CRASH_AT ?? '')
const trace = process.env.CRASH_TRACE
const pending = { times: Number(times) }

function die(): void {
  process.kill(process.pid, 'SIGKILL')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0) // another thread may be the one that gets the signal
}

/** Whether the process is to die around this step. */
function isTime(step: string): boolean {
  if (trace !== undefined) fs.appendFileSync(trace, `${step}\n`)
  if (step !== wanted) return false
  pending.times -= 1
  return pending.times === 0
}

function around<T>(step: string | undefined, work: () => T): T {
  if (step === undefined || !isTime(step)) return work()
  if (moment === 'before') die()
  const result = persist(work)
  if (moment === 'during') setTimeout(die, 1)
  else if (result instanceof Promise) result.then(die, die)
  else die()
  return result
}

/** What fails persists nothing: the next one of its step counts instead. */
function persist<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    pending.times += 1
    throw error
  }
}

function splitOnce(text: string): readonly [string, string, string] {
  const [first = '', second = '', ...rest] = text.split(':')
  return [first, second, rest.join(':')]
}

type Call = (...words: unknown[]) => unknown

const readlink = fs.readlinkSync

/** What dsc does it does relative to folders that it holds open. */
function resolveWord(word: unknown): unknown {
  if (typeof word !== 'string') return word
  try {
    return word.replace(/^\/proc\/self\/fd\/\d+/, (held) => readlink(held))
  } catch {
    return word
  }
}

/** Replaces functions of `node:fs` or its promises by ones that note their step. */
function watchFiles(target: object, names: readonly string[]): void {
  const calls = target as Record<string, Call>
  for (const name of names) {
    const original = calls[name]!
    calls[name] = (...words) =>
      around(nameOfPath(name.replace(/Sync$/, ''), words.map(resolveWord)), () =>
        original.apply(target, words),
      )
  }
}

watchFiles(fs, [
  'renameSync',
  'mkdirSync',
  'linkSync',
  'copyFileSync',
  'openSync',
  'symlinkSync',
  'rmdirSync',
])
syncBuiltinESMExports()

/** What the open transaction of a connection has changed so far. */
const changes = new WeakMap<object, string[]>()

function noteChange(connection: object, sql: string): void {
  const known = changes.get(connection) ?? []
  changes.set(connection, [...known, sql])
}

function commit<T>(connection: object, work: () => T): T {
  const step = nameOfCommit(changes.get(connection) ?? [])
  changes.delete(connection)
  return around(step, work)
}

const sqlite = Database.prototype as unknown as Record<'exec' | 'prepare' | 'pragma', Call>
const { exec, prepare, pragma } = sqlite
sqlite.exec = function (this: object, ...words) {
  const run = () => exec.apply(this, words)
  if (words[0] === 'ROLLBACK') changes.delete(this)
  return words[0] === 'COMMIT' ? commit(this, run) : run()
}
sqlite.prepare = function (this: object, ...words) {
  const statement = prepare.apply(this, words) as Record<'run' | 'all' | 'get', Call>
  for (const name of ['run', 'all', 'get'] as const) {
    const original = statement[name]
    statement[name] = (...parameters) => {
      noteChange(this, String(words[0]))
      return original.apply(statement, parameters)
    }
  }
  return statement
}
sqlite.pragma = function (this: object, ...words) {
  const step = words[0] === 'journal_mode = DELETE' ? 'manifest finished' : undefined
  return around(step, () => pragma.apply(this, words))
}

const client = pg.Client.prototype as unknown as Record<'query', Call>
const { query } = client
client.query = function (this: object, ...words) {
  const run = () => query.apply(this, words)
  const [asked] = words as [string | { readonly text?: string }]
  const sql = typeof asked === 'string' ? asked : (asked.text ?? '')
  if (sql.startsWith('BEGIN') || sql === 'ROLLBACK') changes.delete(this)
  if (sql === 'COMMIT') return commit(this, run)
  noteChange(this, sql)
  return run()
}
