/** The arguments of `dsc prepare` that the short ways understand. */
export interface ReadyWords {
  name: string
  isJson: boolean
  isQuiet: boolean
  task?: string
  ttl?: string
  config?: string
}

/** By hand: Node's `parseArgs` takes a millisecond. Undefined: it says something else, which the whole program reads. */
export function readReadyWords([verb, ...words]: readonly string[]): ReadyWords | undefined {
  const read: ReadyWords = { name: '', isJson: false, isQuiet: false }
  if (verb !== 'prepare') return undefined
  for (let index = 0; index < words.length; index++) {
    const word = words[index]!
    const [, option, joined] = /^--(task|ttl|config)(?:=(.*))?$/s.exec(word) ?? []
    if (option !== undefined) {
      const value = joined ?? words[++index]
      if (value === undefined || value === '' || (joined === undefined && value.startsWith('-')))
        return undefined
      read[option as 'task' | 'ttl' | 'config'] = value
    } else if (word === '--json') read.isJson = true
    else if (word === '--quiet' || word === '-q') read.isQuiet = true
    else if (word.startsWith('-') || word === '' || read.name !== '') return undefined
    else read.name = word
  }
  return read.name === '' ? undefined : read
}
