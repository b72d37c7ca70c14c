import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sampleBytes } from './sample-folder.js'

/**
 * Tar shards of a source, `flowers/train/<number>.tar`, with a file beside them. Sample `id` is in shard ⌊id /
 * inShard⌋; `isPaired`: each has a second member.
 */
export function makeShardObjects(options: {
  readonly shards: number
  readonly inShard: number
  readonly lengthOf: (id: number) => number
  readonly isPaired?: boolean
}): Map<string, Buffer> {
  const { shards, inShard, lengthOf, isPaired } = options
  const folder = mkdtempSync(join(tmpdir(), 'dsc-shards-'))
  const objects = new Map<string, Buffer>([['flowers/README', Buffer.from('flowers')]])
  for (let shard = 0; shard < shards; shard++) {
    const names: string[] = []
    for (let id = shard * inShard; id < (shard + 1) * inShard; id++) {
      const key = String(id).padStart(4, '0')
      writeFileSync(join(folder, `${key}.bin`), sampleBytes(id, lengthOf(id)))
      names.push(`${key}.bin`)
      if (!isPaired) continue
      writeFileSync(join(folder, `${key}.cls`), String(id % 10))
      names.push(`${key}.cls`)
    }
    execFileSync('tar', ['-C', folder, '-cf', join(folder, 'shard'), ...names])
    objects.set(`flowers/train/${shard}.tar`, readFileSync(join(folder, 'shard')))
  }
  rmSync(folder, { recursive: true })
  return objects
}
