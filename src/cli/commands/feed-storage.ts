import { Command } from 'commander'
import type { CliContext } from '../context.js'
export function feedStorageCommand(_context: CliContext): Command {
  return new Command('storage')
}
