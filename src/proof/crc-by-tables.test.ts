import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { getCrc } from './crc.js'
import { TableCrc } from './crc-by-tables.js'

const ONES = { crc32c: 0xffffffffn, crc64nvme: 0xffffffffffffffffn }

for (const algorithm of ['crc32c', 'crc64nvme'] as const)
  test(`${algorithm} by tables is that of the module, wherever bytes begin and whatever came before`, () => {
    const tables = new TableCrc(algorithm)
    const update = getCrc(algorithm)
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 100 }),
        fc.nat(7),
        fc.bigInt({ min: 0n, max: ONES[algorithm] }),
        (bytes, shift, previous) => {
          const data = Buffer.concat([Buffer.alloc(shift), bytes]).subarray(shift)
          assert.equal(tables.update(data, previous), update(data, previous))
        },
      ),
    )
  })

/** Takes all the memory that the engine can give, then computes digests. */
const SCRIPT = `
  const taken = []
  try { while (taken.length < 20) taken.push(new WebAssembly.Memory({ initial: 1 })) } catch {}
  const { createDigest } = await import(${JSON.stringify(import.meta.resolve('./digest.js'))})
  const digestOf = (algorithm) => {
    const digest = createDigest(algorithm)
    digest.update(Buffer.from('123456789'))
    return digest.finish().toString('hex')
  }
  console.log(taken.length < 20, digestOf('crc32c'), digestOf('crc64nvme'))
`

test('checksums of S3 are there where ulimit -v leaves no addresses for WebAssembly', async () => {
  const limited = `ulimit -v 40000000 && exec "$0" --input-type=module -e "$1"`
  const { stdout } = await promisify(execFile)('sh', ['-c', limited, process.execPath, SCRIPT])
  assert.equal(stdout, 'true e3069283 ae8b14860a799888\n')
})
