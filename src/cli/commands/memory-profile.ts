import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command } from 'commander'
import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { formatBytes } from '../../memory/budget.js'
import { PROFILE_FILE, readJsonFile } from '../../memory/named-file.js'
import { readProfile } from '../../memory/profile-file.js'
import { runProfiled } from '../../memory/run-profiled.js'
import { formatCount } from '../../model/format-count.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import type { CliContext } from '../context.js'
import { requireOwnFile } from '../output/require-own-file.js'
import { findExecutable } from '../spawn-command.js'

/** `dsc memory profile`: runs a training script and records its first iterations. */
export function memoryProfileCommand({ report, signal, environment, commandWords }: CliContext) {
  return new Command('profile')
    .description('record the first steps of a PyTorch script')
    .usage('[options] -- <command> [arguments...]')
    .option('--out <file>', 'file for the profile', 'memory.profile.json')
    .option('--keep-running', 'do not stop the script after the profile', false)
    .addHelpText(
      'after',
      '\nExample:\n  dsc memory profile --out gpt.profile.json -- python train.py --batch 16',
    )
    .action(async (options) => {
      if (commandWords.length === 0) {
        throw new DscError('USAGE', 'no command: expected one after --', {
          hint: 'dsc memory profile -- python train.py',
        })
      }
      findExecutable(commandWords[0]!, environment)
      await requireOwnFile(options.out, 'dsc.mem.profile')
      const part = `${resolve(options.out)}.part` // an older profile must not pass for this script's
      await rm(part, { force: true })
      const exitCode = await runProfiled(commandWords, {
        out: part,
        isStoppedAfter: !options.keepRunning,
        environment,
        signal,
      })
      if (exitCode !== 0)
        throw new DscError(
          'MEMORY_FILE_INVALID',
          `${commandWords.join(' ')} ended with exit code ${exitCode}`,
          { hint: 'run it by itself first; what it printed is above' },
        )
      if (!existsSync(part)) {
        throw new DscError(
          'MEMORY_FILE_INVALID',
          `${commandWords.join(' ')} ended before it called backward(), so there is no profile`,
          { hint: 'name a script that trains a torch.nn.Module, with the Python that has torch' },
        )
      }
      await throwRefusal(part)
      const { profile } = await readProfile(part)
      await rename(part, resolve(options.out))
      const { layers, tensors, peak, device } = profile
      const answer: AnswerOf<'memory profile'> = {
        profile: resolve(options.out),
        layers: layers.length,
        tensors: tensors.length,
        peakBytes: peak.bytes,
        device,
      }
      report.result(
        answer,
        () =>
          `${options.out}: ${formatCount(layers.length, 'layer')}, ${formatCount(tensors.length, 'tensor')}, peak ${formatBytes(peak.bytes)} at ${peak.at}; copies on ${device.name}: out ${device.d2hGBs} GB/s, in ${device.h2dGBs} GB/s`,
      )
    })
}

/** Throws the refusal that the profiler left in the profile's place, if it cannot profile the model. */
async function throwRefusal(path: string): Promise<void> {
  const { value } = await readJsonFile(path, PROFILE_FILE)
  const refusal = refusalSchema.safeParse(value)
  if (!refusal.success) return
  await rm(path)
  throw new DscError('MEMORY_FILE_INVALID', refusal.data.why, { hint: PLANNABLE_HINT })
}

const refusalSchema = z.object({ v: z.literal(1), kind: z.literal('dsc.mem.refusal'), why: z.string() })
const PLANNABLE_HINT = 'docs/guides/memory.md says which models are planned'
