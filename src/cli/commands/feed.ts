import { Command } from 'commander'
import type { CliContext } from '../context.js'
import { feedBenchCommand } from './feed-bench.js'
import { feedHeadspaceCommand } from './feed-headspace.js'
import { feedIndexCommand } from './feed-index.js'
import { feedPlanCommand } from './feed-plan.js'
import { feedServeCommand } from './feed-serve.js'
import { feedStatusCommand } from './feed-status.js'
import { feedStorageCommand } from './feed-storage.js'

const EXAMPLES = `
Examples:
  dsc feed plan /data/flowers --batch 256 --ranks 8
  dsc feed serve /data/flowers --seed 42 --memory 2GiB
  dsc feed storage /data/flowers --stripe 0/2 --listen 10.0.0.7:7071
  dsc feed serve --from 10.0.0.7:7071,10.0.0.8:7071 --layout striped
  dsc feed status`

/** `dsc feed` and its commands. */
export function feedCommand(context: CliContext) {
  return new Command('feed')
    .addCommand(feedServeCommand(context))
    .addCommand(feedPlanCommand(context))
    .addCommand(feedIndexCommand(context))
    .addCommand(feedStatusCommand(context))
    .addCommand(feedHeadspaceCommand(context))
    .addCommand(feedBenchCommand(context))
    .addCommand(feedStorageCommand(context))
    .addHelpText('after', EXAMPLES)
}
