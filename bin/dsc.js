#!/usr/bin/env node
'use strict'
// The version is checked before anything is loaded: better-sqlite3 13 crashes the process on Node 20.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 12)) {
  process.stderr.write(
    `dsc needs Node 22.12 or newer, but ${process.execPath} is ${process.versions.node}.\n` +
      'Put a newer Node first on PATH. A checkout of dsc has one: node_modules/node/bin\n',
  )
  process.exit(2)
}
require('node:module').enableCompileCache()

async function run() {
  const argv = process.argv.slice(2)
  if (argv[0] === 'prepare') {
    const { prepareIfReady } = require('../dist/warm-prepare.cjs')
    if (await prepareIfReady(argv, require('../package.json').version)) return
  }
  const { main } = await import('../dist/main.js')
  await main()
}
void run()
