import { Command } from 'commander'
import { askFeed } from '../../feed/session/ask-feed.js'
import { MESSAGE } from '../../feed/session/wire.js'
import type { FeedStatusAnswer } from '../answers/feed-answers.js'
import type { CliContext } from '../context.js'
import { defaultSocketPath } from './feed-arguments.js'

interface StatusOptions {
  readonly socket?: string
  readonly stop?: true
}

/** `dsc feed status`. */
export function feedStatusCommand(context: CliContext): Command {
  return new Command('status')
    .description('show what a feed does, as Prometheus text')
    .option('--socket <path>', 'socket of the feed')
    .option('--stop', 'end the feed')
    .addHelpText('after', '\nExamples:\n  dsc feed status\n  dsc feed status --stop')
    .action(async (options: StatusOptions) => {
      const path = options.socket ?? defaultSocketPath(context.environment)
      const text = await askFeed(path, MESSAGE.status)
      if (options.stop) await askFeed(path, MESSAGE.stop)
      const answer: FeedStatusAnswer = { dsc: 1, metrics: parseMetrics(text) }
      context.report.result(answer, () => text.trimEnd())
    })
}

/** Parses lines of `name{labels} value` into an object; skips comments. */
export function parseMetrics(text: string): Readonly<Record<string, number>> {
  const rows = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    rows.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}
