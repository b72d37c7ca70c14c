import { testSourceContract } from '../sources/source.contract.js'
import { openMemorySource } from './memory-source.js'

testSourceContract('memory', async () => {
  const source = openMemorySource({})
  return {
    source,
    put: async (key, body) => void source.objects.set(key, Buffer.from(body)),
    remove: async (key) => void source.objects.delete(key),
    close: async () => {},
  }
})
