import { fromText } from '../samples/byte-path.js'
import { listFolder } from '../samples/list-folder.js'
import { unpackRows } from '../samples/rows/unpack-rows.js'

// Unpacks the Parquet files of a folder, to be killed during it: node unpack-child.js <folder> <folder of rows>
const [root, folder] = process.argv.slice(2) as [string, string]
const { files } = await listFolder(root, 'follow')
await unpackRows({
  root: fromText(root),
  files,
  columns: undefined,
  kept: 'rows',
  folder,
  makeRoom: async () => {},
  settle: async () => {},
  onProgress: (done) => console.log(done),
})
