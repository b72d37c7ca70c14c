import { atEnd } from '../../failure/closers.js'
import { planDepth } from '../../feed/plan/arena-budget.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { argument, parseCount } from '../arguments/parse-argument.js'
import type { CliContext } from '../context.js'
import { createFeedCommand, openEngineFor } from './feed-source.js'

type EpochRate = AnswerOf<'feed bench'>['epochs'][number]

/** `dsc feed bench`. */
export function feedBenchCommand(context: CliContext) {
  return createFeedCommand('bench')
    .description('read epochs in this process, and print the rate')
    .option('--batch <n>', 'samples in a batch', argument(parseCount), 64)
    .option('--epochs <n>', 'epochs to read', argument(parseCount), 2)
    .addHelpText(
      'after',
      '\nExamples:\n  dsc feed bench flowers --epochs 3\n  dsc feed bench /data/flowers --epochs 2 --json',
    )
    .action(async (target, options) => {
      const engine = await openEngineFor(target, options, context)
      await using _ = atEnd(() => engine.close())
      const { table } = engine
      const rank = { batchSize: options.batch, world: 1, rank: 0, replicate: 1, last: 'drop' } as const
      const batchBytes = (table.totalBytes / table.count) * options.batch
      const depth = planDepth({ batchBytes, memoryBytes: engine.memoryBytes, clients: 1 })
      const stream = engine.openStream(rank, depth)
      const epochs: EpochRate[] = []
      for (let epoch = 0; epoch < options.epochs && !context.signal.aborted; epoch++) {
        const [ms, samples, bytes] = [
          performance.now(),
          stream.meter.samplesDelivered,
          stream.meter.bytesDelivered,
        ]
        if (epoch === 0) await stream.start(0, 0)
        for (let step = 0; step < stream.sequence.stepsPerEpoch && !context.signal.aborted; step++)
          stream.release(await stream.read(epoch, step))
        const seconds = (performance.now() - ms) / 1000
        const samplesPerSecond = (stream.meter.samplesDelivered - samples) / seconds
        epochs.push({
          epoch,
          elapsedSeconds: seconds,
          samplesPerSecond,
          bytesPerSecond: (stream.meter.bytesDelivered - bytes) / seconds,
        })
      }
      const { counts } = stream
      const answer: AnswerOf<'feed bench'> = {
        samples: table.count,
        epochs,
        counts,
        memory: engine.budget,
        arena: engine.arena.counts,
      }
      context.report.result(answer, () => epochs.map(formatRate).join('\n'))
    })
}

function formatRate(rate: EpochRate): string {
  const mib = rate.bytesPerSecond / 2 ** 20
  return `epoch ${rate.epoch}: ${rate.samplesPerSecond.toFixed(0)} samples/s, ${mib.toFixed(0)} MiB/s`
}
