#!/usr/bin/env node
'use strict'
// The version is checked before anything is loaded: on older ones better-sqlite3 13 crashes the process.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 14)) {
  process.stderr.write(
    `dsc needs Node 22.14 or newer, but ${process.execPath} is ${process.versions.node}.\n` +
      'Put a newer Node first on PATH. A checkout of dsc has one: node_modules/node/bin\n',
  )
  process.exit(3)
}

const readVersion = () => require('../package.json').version

async function run() {
  const argv = process.argv.slice(2)
  if (argv[0] === 'prepare') {
    const asked = await require('../dist/warm-door.cjs').prepareAtDoor(argv, readVersion)
    if (asked === 'done') process.exit()
    require('node:module').enableCompileCache() // for less than the following it would not pay
    // All is written: an orderly end of Node would only tidy up memory, and close the record (see there).
    if (typeof asked === 'object') {
      const from = { version: readVersion(), config: asked.config }
      if (await require('../dist/warm-prepare.cjs').prepareIfReady(argv, from)) process.exit()
    }
  } else require('node:module').enableCompileCache()
  // The same program without its other verbs, in one file: reading its modules one by one takes 60 ms, of a feed 200.
  const isCold = argv[0] === 'prepare' || argv[0] === 'feed'
  const { main } = isCold ? require('../dist/cold-start.cjs') : await import('../dist/main.js')
  await main()
}
void run()
