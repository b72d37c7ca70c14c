// Loaders of the formats that people have, each on its own files: rows of Parquet, MDS and LitData; and the list of 100
// million rows. --only of text,images,shards,index; --part: the data divided by so much; --folder: where it goes, and stays;
// --index-rows: rows of the list
import { listRows } from './formats/index-rows.mjs'
import { drawBars } from './harness/draw-bars.mjs'
import { runPython } from './harness/processes.mjs'

const ROWS =
  `pyarrow:0,hf-map:0,hf-map:2,hf-iter:0,hf-iter:2,litdata-parquet:0,litdata-parquet:2,lance:0,lance:2,dsc:rows,
  dsc:rows-2,dsc:views,dsc:groups,mosaicml:0,mosaicml:2,litdata:0,litdata:2,dsc:mds,dsc:lit`.replaceAll(
    /\s/g,
    '',
  )

export const benchmark = {
  page: 'formats.md',
  options: {
    part: 1,
    epochs: 4,
    only: 'text,images,shards,index',
    rows: ROWS,
    folder: '',
    'index-rows': 100_000_000,
  },
  smoke: {
    part: 100,
    epochs: 2,
    only: 'text,images,index',
    rows: 'pyarrow:0,dsc:rows',
    'index-rows': 100_000,
  },
  async run(bench) {
    const { part, epochs, only, rows, folder, 'index-rows': count } = bench.given
    // Without the loaders of others, which take minutes to install.
    const venv = bench.isSmoke ? 'scripts/parquet-venv.sh' : 'scripts/bench/feed/venv.sh'
    const parts = only.split(',').filter((name) => name !== 'index')
    const words = [part, epochs, rows, parts.join(','), folder || bench.folder]
    if (parts.length > 0) await runPython(bench, 'formats/compare_formats.py', words, { venv, drawBars })
    if (bench.isSmoke) bench.leaveOut('shards', 'it needs the writers of MDS and LitData')
    if (only.includes('index')) bench.section('index', listRows(count))
  },
}
