import { startSourceBench } from '../../testing/source-bench.js'
import { testSourceContract } from '../source.contract.js'

testSourceContract('s3', async () => {
  const bench = await startSourceBench()
  const { bucket, source } = await bench.makeSource({})
  return {
    source,
    hasBrokenXml: bench.server.isS3rver,
    put: (key, body) => bench.server.putObject(bucket, `data/${key}`, body),
    remove: (key) => bench.server.deleteObject(bucket, `data/${key}`),
    close: () => bench.close(),
  }
})
