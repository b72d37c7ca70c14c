// A program: a member of the cache's group who repeatedly replaces its folders by links, until it is stopped by
// SIGTERM. argv: the target of the links, then the folders.
import { renameSync, rmSync, symlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const [target, ...folders] = process.argv.slice(2)
let isOver = false
let swaps = 0
process.on('SIGTERM', () => {
  isOver = true
})

function attempt(act: () => void): void {
  try {
    act()
  } catch {
    // dsc has moved or removed it.
  }
}

for (let round = 0; !isOver; round++) {
  for (const folder of folders) {
    const aside = `${folder}.aside`
    attempt(() => renameSync(folder, aside))
    attempt(() => {
      symlinkSync(target!, folder)
      swaps += 1
    })
    if (round % 7 === 0) await sleep(1)
    attempt(() => rmSync(folder))
    attempt(() => renameSync(aside, folder))
  }
  await sleep(round % 3)
}
process.stdout.write(String(swaps))
