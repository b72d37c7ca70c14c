import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { Mirror, openMirror } from './mirror.js'

test('a mirror shows readers nothing of a version before all of it is there', async () => {
  const mirror = new Mirror(4)
  const seen = new Float32Array(4)
  await mirror.update(1, (half) => {
    half.fill(1)
  })
  await mirror.update(2, (half) => {
    half.fill(2, 0, 2)
    assert.equal(mirror.read(0, 4, seen), 1)
    assert.deepEqual([...seen], [1, 1, 1, 1])
    half.fill(2, 2)
  })
  assert.equal(mirror.read(1, 2, seen.subarray(0, 2)), 2)
  assert.equal(mirror.version, 2)
})

test('a pull that fails half-way leaves the version readers have', async () => {
  const mirror = new Mirror(4)
  await mirror.update(1, (half) => {
    half.fill(1)
  })
  const failing = mirror.update(2, (half) => {
    half.fill(9, 0, 2)
    throw new Error('cut off')
  })
  await assert.rejects(failing, /cut off/)
  const seen = new Float32Array(4)
  assert.equal(mirror.read(0, 4, seen), 1)
  assert.deepEqual([...seen], [1, 1, 1, 1])
})

test('a million reads during pulls in another thread are never torn, and versions never go back', async () => {
  const length = 64
  const mirror = new Mirror(length)
  const module = JSON.stringify(new URL('./mirror.js', import.meta.url).href)
  const writer = new Worker(
    `import { workerData, parentPort } from 'node:worker_threads'
     const { Mirror } = await import(${module})
     const mirror = new Mirror(${length}, workerData)
     const stop = { isAsked: false }
     parentPort.once('message', () => { stop.isAsked = true })
     let version = 0
     while (!stop.isAsked) {
       for (let round = 0; round < 1000; round++) {
         version++
         await mirror.update(version, (half) => { for (let at = 0; at < half.length; at++) half[at] = version })
       }
       await new Promise(setImmediate)
     }
     parentPort.postMessage(version)
     parentPort.unref()`,
    { eval: true, workerData: mirror.buffer },
  )
  await new Promise((settle) => writer.once('online', settle))
  while (mirror.version === 0) await new Promise(setImmediate)
  const seen = new Float32Array(length)
  let last = 0
  let changes = 0
  for (let reads = 0; reads < 1_000_000 || (changes <= 100 && reads < 50_000_000); reads++) {
    const version = mirror.read(0, length, seen)
    for (let at = 0; at < length; at++)
      if (seen[at] !== version) assert.fail(`torn: ${seen} is not ${version}`)
    if (version < last) assert.fail(`version ${version} after ${last}`)
    if (version !== last) changes++
    last = version
  }
  const written = await new Promise<number>((settle) => {
    writer.once('message', settle)
    writer.postMessage('stop')
  })
  await writer.terminate()
  process.stdout.write(`# ${written} pulls, ${changes} of them seen\n`)
  assert.ok(changes > 100, `only ${changes} versions were seen: the test proves nothing`)
})

test('openMirror refuses a host that is too small, with both numbers', () => {
  assert.throws(() => openMirror(1000, 8000), {
    code: 'HOST_MEMORY_SHORT',
    message: 'the parameter mirror needs 8064 bytes of host memory, 8000 are free',
  })
})
