import { type S3Server, startS3Server } from './s3-server.js'
import { s3Dataset } from './world.js'

/** An S3 server with four small objects. */
export interface FlowerStore {
  readonly server: S3Server
  readonly bucket: string
  /** Their settings in dsc.yaml: `flowers` (three objects) and `birds` (one). */
  datasets(): Record<'flowers' | 'birds', ReturnType<typeof s3Dataset>>
}

/** Starts such a server; the caller closes it. */
export async function startFlowerStore(): Promise<FlowerStore> {
  const server = await startS3Server()
  const bucket = await server.makeBucket()
  for (const [key, body] of Object.entries({
    'flowers/rose/1.jpg': 'a rose',
    'flowers/rose/2.jpg': 'another rose',
    'flowers/labels.csv': 'rose,1',
    'birds/1.wav': 'tweet',
  })) {
    await server.putObject(bucket, key, body)
  }
  const datasets = () => ({
    flowers: s3Dataset(bucket, 'flowers/', server.endpoint),
    birds: s3Dataset(bucket, 'birds/', server.endpoint),
  })
  return { server, bucket, datasets }
}
