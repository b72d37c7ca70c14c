// Samples per second of loaders on one machine, in turn, each in a process of its own: PyTorch's, WebDataset, Streaming
// and LitData beside dsc, on 8,000 × 100 KiB, 100,000 × 4 KiB and 6,000 JPEGs.
// --part: the data divided by so much; --runs: whose mean is shown; --epochs: of each run at most, the first does not
// count; --folder: where the data goes, and stays; below /dev/shm it is in memory for certain
import { drawBars } from './harness/draw-bars.mjs'
import { runPython } from './harness/processes.mjs'

const ROWS =
  `torch:0,torch:1,torch:2,stateful:2,wds:0,wds:2,mosaicml:0,mosaicml:2,litdata:0,litdata:2,dsc:raw,dsc:packed,
  dsc:remote`.replaceAll(/\s/g, '')

export const benchmark = {
  page: 'feed.md',
  options: {
    part: 1,
    runs: 2,
    epochs: 4,
    rows: ROWS,
    modes: 'bytes,tensor',
    sets: '100kib,4kib,jpeg',
    folder: '',
  },
  smoke: { part: 100, runs: 1, epochs: 2, rows: 'torch:0,torch:1,dsc:raw,dsc:remote', sets: '100kib,4kib' },
  async run(bench) {
    const { part, runs, epochs, rows, modes, sets, folder } = bench.given
    const words = [part, runs, epochs, rows, modes, sets, folder || bench.folder]
    // Without the loaders of others, which take minutes to install.
    const venv = bench.isSmoke ? 'scripts/python-venv.sh' : 'scripts/bench/feed/venv.sh'
    await runPython(bench, 'feed/compare_loaders.py', words, { venv, drawBars })
    if (bench.isSmoke) bench.leaveOut('jpeg', 'it needs Pillow')
  },
}
