#!/usr/bin/env node
// The version is checked before anything is imported: better-sqlite3 13 crashes the process on Node 20.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 12)) {
  process.stderr.write(
    `dsc needs Node 22.12 or newer, but ${process.execPath} is ${process.versions.node}.\n` +
      'Install a newer Node, or run dsc through npm (npx dsc), which brings its own.\n',
  )
  process.exit(2)
}
// Not imported: the ES module of a builtin costs 1 ms more than the builtin.
process.getBuiltinModule('node:module').enableCompileCache()
const { main } = await import('../dist/main.js')
await main()
