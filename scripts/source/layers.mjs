// Who may import whom in src/, and why: for rooms at the top, and among the rooms inside cache/ and feed/ (`cache` there
// are the files directly in it). scripts/check-layers.mjs holds the source to it, and it to the source: an edge that is
// not here fails, and so does one that nobody uses any more. src/README.md has the rooms in the order of the data.

/** `to`: the room that is imported; `from`: the rooms that import it; `why`: what for. */
export const EDGES = [
  // What everything stands on.
  {
    to: 'model',
    why: 'the words of the project, and their forms in text',
    from: 'answers policy platform config records feed exchange memory cache agent open tui cli manifest sources samples proof',
  },
  {
    to: 'answers',
    why: 'the kinds of fields that JSON answers and files have, each with its unit',
    from: 'failure exchange memory cache cli',
  },
  {
    to: 'failure',
    why: 'every failure that a user can meet is in its table',
    from: 'log http platform config records frames half feed exchange memory cache agent open exports tui cli manifest sources samples proof',
  },
  {
    to: 'platform',
    why: 'processes, disks and files of this machine',
    from: 'log http config records frames feed exchange memory cache agent open executable cli manifest sources samples',
  },
  {
    to: 'policy',
    why: 'quota, admission, eviction and placement are decided there',
    from: 'records cache agent cli sources',
  },
  {
    to: 'frames',
    why: 'messages off sockets and pipes',
    from: 'sources feed exchange memory cache agent cli',
  },
  { to: 'log', why: 'what --verbose and --debug show', from: 'http records cache cli sources' },
  {
    to: 'config',
    why: 'what dsc.yaml and the environment say, as one object',
    from: 'cache agent cli',
  },
  { to: 'records', why: 'the record, behind its port', from: 'cache agent open cli sources' },
  {
    to: 'http',
    why: 'bytes of stores and of other nodes, and questions to them',
    from: 'memory agent cli sources',
  },
  { to: 'wasm', why: 'WebAssembly by hand: checksums, half precision', from: 'half feed proof samples' },
  { to: 'half', why: 'numbers in half precision', from: 'exchange memory' },
  // What both systems and their doors read and write.
  { to: 'proof', why: 'digests, and what they prove', from: 'manifest sources cache agent cli' },
  {
    to: 'manifest',
    why: 'the one owner of what is known of each file of a copy',
    from: 'sources cache agent open',
  },
  {
    to: 'sources',
    why: 'the port behind which a store, a folder or other nodes stand',
    from: 'cache agent open cli',
  },
  {
    to: 'samples',
    why: 'which samples there are, and where their bytes lie',
    from: 'feed agent open exports cli',
  },
  // The systems, and who opens them to users.
  { to: 'cache', why: 'datasets on this node', from: 'agent open exports tui cli' },
  { to: 'feed', why: 'samples in memory', from: 'agent open exports cli' },
  { to: 'exchange', why: 'gradients between ranks', from: 'exports cli' },
  { to: 'memory', why: 'plans for devices, and the central node', from: 'exports cli' },
  {
    to: 'agent',
    why: 'a feed over stripes asks the agents of other nodes; a command runs this one',
    from: 'open cli',
  },
  { to: 'open', why: 'what a user names becomes what a feed reads', from: 'exports cli' },
  { to: 'tui', why: 'the live screen is a command', from: 'cli' },
  {
    to: '(src)',
    why: 'the composition root; the files that threads of transfers and of the gateway run',
    from: 'exports cache agent',
  },
  // Inside cache/.
  {
    to: 'cache',
    why: 'the cache of a node: where its files lie, what opens it',
    from: 'cache/api cache/arrivals cache/download cache/eviction cache/leases cache/names cache/prepare cache/status cache/upkeep',
  },
  {
    to: 'cache/arrivals',
    why: 'what readers of an arriving copy need is fetched first, and a status says who they are',
    from: 'cache/download cache/status',
  },
  {
    to: 'cache/leases',
    why: 'who keeps a copy; a copy that is read from must be kept',
    from: 'cache/eviction cache/prepare cache/status cache/upkeep',
  },
  {
    to: 'cache/names',
    why: 'a refusal names a dataset as users call it',
    from: 'cache/eviction cache/prepare cache/upkeep',
  },
  {
    to: 'cache/download',
    why: 'list, fetch, publish: for the first time, or to repair',
    from: 'cache/prepare cache/upkeep',
  },
  {
    to: 'cache/eviction',
    why: 'room is made for what is staged, or for the policy',
    from: 'cache/api cache/prepare cache/upkeep',
  },
  {
    to: 'cache/prepare',
    why: 'commands ask for it by one interface, which a service behind a door has, too',
    from: 'cache/api',
  },
  {
    to: 'cache/status',
    why: 'a report and a receipt read the record page by page, as a status does',
    from: 'cache/accounting',
  },
  { to: 'cache/upkeep', why: 'what an earlier stager left is cleaned up first', from: 'cache/prepare' },
  { to: 'cache/upkeep', why: 'users take their deeds back here, or at the door', from: 'cache/api' },
  // Inside feed/.
  {
    to: 'feed/plan',
    why: 'order, ranks, requests: the same everywhere, and pure',
    from: 'feed/mapped feed/arena feed/threads feed/sources feed/stream feed/epochs feed/engine feed/batches feed/session',
  },
  {
    to: 'feed/arena',
    why: 'the one memory that samples lie in',
    from: 'feed/threads feed/sources feed/storage feed/stream feed/epochs feed/engine feed/session',
  },
  {
    to: 'feed/threads',
    why: 'files are read beside the main thread',
    from: 'feed/mapped feed/sources feed/epochs feed/engine',
  },
  {
    to: 'feed/sources',
    why: 'a request becomes bytes: from disk, nodes or a store',
    from: 'feed/engine',
  },
  { to: 'feed/storage', why: 'the wire to and from storage nodes', from: 'feed/sources' },
  {
    to: 'feed/stream',
    why: 'samples in order, one epoch after the other',
    from: 'feed/mapped feed/engine feed/batches feed/session',
  },
  { to: 'feed/epochs', why: 'what an epoch keeps for the next', from: 'feed/mapped feed/stream feed/engine' },
  { to: 'feed/mapped', why: 'clients read files of packed samples themselves', from: 'feed/engine' },
  { to: 'feed/engine', why: 'one feed put together', from: 'feed/batches feed/session' },
  { to: 'feed/batches', why: 'a rank takes batches, here or over a socket', from: 'feed/session' },
]

/** Rooms whose inner rooms are held to the table, too. */
export const SPLIT = ['cache', 'feed']

/** Files that decide and do nothing else: no clock, randomness, process, waiting or packages, and nothing impure imported. */
export const PURE = [
  /^memory\/(step|ways|explain)\//,
  /^(model|policy|answers)\//,
  /^(exchange|memory)\/[a-z]+-answer\.ts$/,
  /\/(plan|view)\//,
  /\/plan-[^/]*$/,
  /^agent\/gateway\/s3-request\.ts$/,
  /^manifest\/key-to-path\.ts$/,
  /^proof\/object-facts\.ts$/,
  /^cache\/.*\/(compose-status|update-status|explain-copy|explain-dataset|explain-refusal|find-layouts|find-dead-leases|choose-caller|choose-holder|facts-of-row|list-holdings|list-troubles|list-waits|node-usage|throughput|trace-day|trace-uses|transfer-rates)\.ts$/,
]

/** Named like what decides, but they carry out what was planned with them. */
export const NOT_PURE = [/\/plan-prepare\.ts$/, /\/plan-files?\.ts$/]

/** Packages that only compute. */
export const PURE_PACKAGES = ['cli-truncate', 'string-width', 'wrap-ansi', 'zod']
