import { fromText } from '../samples/byte-path.js'
import { listFolder } from '../samples/list-folder.js'
import { unpackRows } from '../samples/rows/unpack-rows.js'

// Unpacks the Parquet files of a folder until some are done, then stops to be killed, however late that is:
// node unpack-child.js <folder> <folder of rows> <files>
const [root, folder, count] = process.argv.slice(2) as [string, string, string]
const { files } = await listFolder(root, 'follow')
await unpackRows({
  root: fromText(root),
  files: files.list(),
  columns: undefined,
  kept: 'rows',
  folder,
  makeRoom: async () => {},
  settle: async () => {},
  onProgress: (done) => {
    if (done === Number(count)) process.kill(process.pid, 'SIGSTOP')
  },
})
