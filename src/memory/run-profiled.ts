import { spawn } from 'node:child_process'
import { delimiter } from 'node:path'
import { fileURLToPath } from 'node:url'
import { atEndNow } from '../failure/closers.js'
import { DscError } from '../failure/dsc-error.js'

/** The Python sources of this package, and a folder whose `sitecustomize` starts the profiler in any script. */
const PYTHON_FOLDER = fileURLToPath(new URL('../../src/python', import.meta.url))
const AUTOSTART_FOLDER = fileURLToPath(new URL('../../src/python/dsc/memory/autostart', import.meta.url))

/**
 * Runs `command` with the profiler loaded into its Python, and resolves with its exit code. The script's own
 * output goes to stderr, so that stdout stays the command's result.
 */
export async function runProfiled(
  command: readonly string[],
  options: {
    readonly out: string
    readonly isStoppedAfter: boolean
    readonly environment: Readonly<Record<string, string | undefined>>
    readonly signal: AbortSignal
  },
): Promise<number> {
  const [program, ...words] = command
  const { environment } = options
  const paths = [AUTOSTART_FOLDER, PYTHON_FOLDER, environment.PYTHONPATH].filter(Boolean)
  const child = spawn(program!, words, {
    stdio: ['inherit', 2, 'inherit'],
    env: {
      ...environment,
      PYTHONPATH: paths.join(delimiter),
      DSC_MEMORY_PROFILE: options.out,
      DSC_MEMORY_PROFILE_STOP: options.isStoppedAfter ? '1' : '0',
    },
  })
  const stop = () => child.kill('SIGTERM')
  options.signal.addEventListener('abort', stop, { once: true })
  if (options.signal.aborted) stop()
  using _ = atEndNow(() => options.signal.removeEventListener('abort', stop))
  return await new Promise<number>((settle, fail) => {
    child.once('error', (cause) =>
      fail(new DscError('COMMAND_UNUSABLE', `cannot run ${program}: ${cause.message}`, { cause })),
    )
    child.once('close', (code, killedBy) => settle(killedBy ? 128 : (code ?? 1)))
  })
}
