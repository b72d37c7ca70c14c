import type { BytePath } from '../byte-path.js'
import { toBytes, toText } from '../byte-path.js'
import type { SampleGroups } from '../plan/sample-groups.js'
import { runRowsJobs } from './rows-threads.js'
import type { UnpackRequest } from './unpack-rows.js'

/** Rows of Parquet files that are read in place, a row group at a time; samples are in the order of the files. */
export interface RowGroups extends SampleGroups {
  /** Folder of the Parquet files, absolute. */
  readonly root: BytePath
  /** Columns of each row, in this order; undefined: all. */
  readonly columns: readonly string[] | undefined
  /** Why rows are not unpacked; undefined: it was requested. */
  readonly reason: string | undefined
}

/** Reads the footers of all files; returns where each row group ends in all rows, without groups of 0 rows. */
export async function findGroupEnds(
  request: Pick<UnpackRequest, 'root' | 'files' | 'columns' | 'patienceMs'>,
): Promise<Float64Array> {
  const { root, files, columns, patienceMs } = request
  const found: (readonly number[])[] = files.map(() => [])
  const jobs = files.map(({ path }) => ({
    kind: 'inspect' as const,
    path: toBytes(`${root}/${path}`),
    shown: toText(path),
    columns,
  }))
  await runRowsJobs(jobs, {
    patienceMs,
    onResult(place, result) {
      if (result.kind === 'inspect') found[place] = result.groupRows
    },
  })
  const rows = found.flat()
  const ends = new Float64Array(new SharedArrayBuffer(8 * rows.length))
  let end = 0
  for (const [group, count] of rows.entries()) {
    end += count
    ends[group] = end
  }
  return ends
}
