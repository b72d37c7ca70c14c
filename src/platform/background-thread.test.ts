import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'

test('a process with nothing else to do waits for a thread that is being stopped, whatever it still answers', () => {
  const program = `
    import { BackgroundThread } from ${JSON.stringify(new URL('./background-thread.js', import.meta.url))}
    const busy = new URL('data:text/javascript,setInterval(()=>{},1000)')
    const thread = new BackgroundThread(busy, { data: {}, onReply() {}, onFailure() {} })
    const stopped = thread.stop()
    thread.unref() // as upon a last answer
    await stopped
    console.log('went on')`
  const printed = execFileSync(process.execPath, ['--input-type=module', '--eval', program], {
    encoding: 'utf8',
  })
  assert.equal(printed, 'went on\n')
})
