// What `DSC_TEST_DOOR=1 npm run test:e2e` leaves out: files and tests that only a cache of one's own can pass, with why.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** `files`: names in src/e2e without `.test.ts`; `titles`: how tests begin. */
const LEFT_OUT = [
  {
    why: 'it watches or harms the process that acts, which is the service: its system calls, crashes and preloaded faults',
    files: ['nothing-is-sent', 'publish-order', 'record-faults', 'failing-calls'],
  },
  {
    why: 'the stager is the service: a client that is killed only hangs up, which counts as ^C',
    titles: [
      'a stager killed with -9 is replaced by one that waits',
      'cleanup --resume finishes a staging whose stager was killed',
      'a cleanup that is killed while it removes the trash',
      '--no-wait fails at once while another process stages',
      'a staging is stopped on the screen',
    ],
  },
  {
    why: 'it takes record or cache away from a service that has them open; a restart of it says so',
    files: ['damaged-manifest'],
    titles: [
      'a cache root whose disk is not mounted is refused',
      'cleanup brings a copy back into a record that was lost',
      'a folder that is its own source is never deleted',
    ],
  },
  {
    why: 'a mistake in the configuration keeps the service from starting',
    files: ['own-cache'],
    titles: ['a port above 65535 in dsc.yaml', 'a dataset says in dsc.yaml what its files hold'],
  },
  {
    why: 'the log of a client has what it asks the service; SQL and requests to sources are in the log of that',
    titles: [
      '--verbose says what is asked',
      'DSC_LOG and --log-file say the same',
      'what is tried again is said',
    ],
  },
  {
    why: 'prepare --remote prints a URL for the token of the cluster, which no client of the door has',
    files: ['json-cluster'],
  },
  {
    why: 'rows are unpacked in the cache of the user who feeds, beside no copy of the service',
    titles: ['rows of a dataset come in global order', 'rows that the quota has no room for are'],
  },
  {
    why: 'a feed reads what no storage node gives from the source, with the keys of its user, who has none',
    titles: ['when every storage node is gone the samples are read from S3'],
  },
  {
    why: 'who asks may stage more slowly than the service, never faster',
    titles: ['--bandwidth-limit holds, and stands above'],
  },
]

const E2E = join(import.meta.dirname, '../src/e2e')

/** The files of tests on a world that run through the door, and the pattern of those tests in them that do not. */
export function planDoorTests() {
  const files = readdirSync(E2E).filter((file) => /^(?!cluster-).*\.test\.ts$/.test(file))
  const texts = new Map(
    files.map((file) => [file.slice(0, -'.test.ts'.length), readFileSync(join(E2E, file), 'utf8')]),
  )
  const left = LEFT_OUT.flatMap((one) => one.files ?? [])
  const titles = LEFT_OUT.flatMap((one) => one.titles ?? [])
  const all = [...texts.values()].join('')
  const gone = [...left.filter((name) => !texts.has(name)), ...titles.filter((title) => !all.includes(title))]
  if (gone.length > 0) throw new Error(`scripts/test-door.mjs names what is not there: ${gone.join('; ')}`)
  const run = [...texts.keys()].filter(
    (name) => texts.get(name).includes('makeWorld(') && !left.includes(name),
  )
  return { files: run.map((name) => `dist/e2e/${name}.test.js`), skip: `/^(${titles.join('|')})/` }
}
