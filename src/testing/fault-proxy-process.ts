import { createInterface } from 'node:readline'
import { type FaultRule, startFaultProxy } from './fault-proxy.js'

/**
 * The fault proxy as a separate process: `node dist/testing/fault-proxy-process.js http://target '[rules]'`. Prints its
 * endpoint as one line of JSON. Each line of JSON on its stdin is a command, answered by a line: `{"rules": […]}` sets
 * the rules, `{"count": "regular expression"}` counts requests, `{"forget": true}` forgets them. Ends with its stdin.
 */
const [target = '', rules = '[]'] = process.argv.slice(2)
const proxy = await startFaultProxy(target, JSON.parse(rules) as FaultRule[])
const say = (answer: object) => process.stdout.write(`${JSON.stringify(answer)}\n`)
say({ endpoint: proxy.endpoint })
for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line) as { rules?: FaultRule[]; count?: string; forget?: true }
  if (command.rules) proxy.setRules(command.rules)
  if (command.forget) proxy.forget()
  say({
    requests: command.count === undefined ? proxy.requests.length : proxy.count(new RegExp(command.count)),
    sentBytes: proxy.sentBytes,
  })
}
await proxy.close()
