import { Command } from 'commander'
import type { CliContext } from '../context.js'

/** `dsc params`: the central node of a training job. */
export function paramsCommand(_context: CliContext): Command {
  return new Command('params').description('serve the parameters of a training job')
}
