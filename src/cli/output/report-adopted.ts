import { describeCopy } from '../../cache/status/describe-status.js'
import { formatByteSize } from '../../model/byte-size.js'
import type { Copy } from '../../model/copy.js'
import { formatCount } from '../../model/format-count.js'
import type { AnswerOf } from '../answers/answer-schemas.js'
import { alignColumns } from './align-columns.js'
import type { Reporter } from './reporter.js'

/** The result of `dsc adopt`: the copies that the record now has. */
export function reportAdopted(report: Reporter, adopted: readonly Copy[]): void {
  const answer: AnswerOf<'adopt'> = {
    copies: adopted.map((copy) => describeCopy({ ...copy, referenceCount: 0, isBeingStaged: false })),
  }
  report.result(answer, () => formatAdopted(adopted))
}

function formatAdopted(adopted: readonly Copy[]): string {
  if (adopted.length === 0) return 'nothing new to adopt'
  return alignColumns(
    adopted.map((copy) => [
      `adopted ${copy.dataset}`,
      formatCount(copy.files, 'file'),
      formatByteSize(copy.chargedBytes),
      copy.path,
      copy.lock ? 'locked' : '',
    ]),
  )
}
