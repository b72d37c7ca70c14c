#!/usr/bin/env node
'use strict'
// The version is checked before anything is loaded: on older ones better-sqlite3 13 crashes the process.
const oldest = /\d+\.\d+/.exec(require('../package.json').engines.node)[0]
const [major, minor] = process.versions.node.split('.').map(Number)
const [oldestMajor, oldestMinor] = oldest.split('.').map(Number)
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(
    `dsc needs Node ${oldest} or newer, but ${process.execPath} is ${process.versions.node}.\n` +
      'Put a newer Node first on PATH. A checkout of dsc has one: node_modules/node/bin\n',
  )
  process.exit(3)
}
require('node:module').enableCompileCache()

async function run() {
  const argv = process.argv.slice(2)
  if (argv[0] === 'prepare') {
    const { prepareIfReady } = require('../dist/warm-prepare.cjs')
    // All is written: an orderly end of Node would only tidy up memory, and close the record (see there).
    if (await prepareIfReady(argv, require('../package.json').version)) process.exit()
  }
  // The same program without its other verbs, in one file: reading its modules one by one takes 60 ms, of a feed 200.
  const isCold = argv[0] === 'prepare' || argv[0] === 'feed'
  const { main } = isCold ? require('../dist/cold-start.cjs') : await import('../dist/main.js')
  await main()
}
void run()
