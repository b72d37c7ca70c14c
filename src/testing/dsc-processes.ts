import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'

/** The command that runs the real program: the checkout's, or the executable file in DSC_BIN. */
export const DSC: readonly string[] = process.env.DSC_BIN
  ? [process.env.DSC_BIN]
  : [process.execPath, fileURLToPath(new URL('../../bin/dsc.js', import.meta.url))]

/** The same for a shell: a checkout may lie in a folder whose name has a space. */
export const DSC_IN_SHELL = DSC.map((word) => `'${word}'`).join(' ')

export interface Finished {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** Returns the output of a command; fails with its standard error unless it exits with 0. */
export async function succeeds<Said extends Pick<Finished, 'code' | 'stderr'>>(
  work: Promise<Said>,
): Promise<Said> {
  const said = await work
  assert.equal(said.code, 0, said.stderr)
  return said
}

/** A running process. */
export interface Running {
  readonly process: ChildProcess
  readonly finished: Promise<Finished>
}

export type StartProcess = (
  command: readonly string[],
  options: {
    readonly cwd: string
    /** In addition to those variables of this process that do not affect dsc. */
    readonly environment: Readonly<Record<string, string>>
    readonly detached?: boolean
    /** Run as another user than the tests'. */
    readonly owner?: { readonly uid: number; readonly gid: number } | undefined
  },
) => Running

/** Variables that would make a run depend on the tester's environment. */
const OWN = new Set(['AWS_PROFILE', 'AWS_CA_BUNDLE', 'SLURM_JOB_ID', 'DSC_CONFIG', 'NODE_OPTIONS'])

/** Returns a function that starts processes; kills those still running at the end of the test. */
export function killWithTest(context: Pick<TestContext, 'after'>): StartProcess {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !OWN.has(name)))
  const started = new Set<ChildProcess>()
  context.after(async () => {
    // One that has exited is still here until its children close its output, and says its exit no second time.
    const living = [...started].filter(({ exitCode, signalCode }) => exitCode === null && signalCode === null)
    const ended = living.map((child) => new Promise((resolve) => child.once('exit', resolve)))
    for (const child of living) child.kill('SIGKILL')
    await Promise.all(ended)
  })
  return ([program, ...words], { cwd, environment, detached = false, owner }) => {
    const child = spawn(program!, words, {
      cwd,
      detached,
      ...owner,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...inherited, DSC_DOOR: 'none', ...environment },
    })
    started.add(child)
    const texts = { stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name]!.setEncoding('utf8').on('data', (text: string) => {
        texts[name] += text
      })
    }
    const finished = new Promise<Finished>((resolve, reject) => {
      child.once('error', (error) => {
        started.delete(child)
        reject(error)
      })
      child.once('close', (code, signal) => {
        started.delete(child)
        resolve({ code, signal, ...texts })
      })
    })
    return { process: child, finished }
  }
}
