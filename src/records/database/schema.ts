/** The differences between the engines' dialects, filled into the one schema below. */
interface SchemaDialect {
  /** Type of a text column that sorts by bytes. */
  readonly text: string
  /** Type of a 64-bit integer column. */
  readonly integer: string
  /** Type and constraint of an auto-incrementing key. */
  readonly sequenceKey: string
  /** Expression for the current time, Unix epoch in ms. */
  readonly nowMs: string
  /** Expression for the URL in column `source` of copies. */
  readonly sourceUrl: string
  /** Where a generated column that is added to a table lives: the word of its declaration. */
  readonly generated: 'STORED' | 'VIRTUAL'
}

/**
 * The record's schema as a list of migrations: applying the first n gives version n. Never change a released migration;
 * append. `cache_record` is the seed's cache record file.
 */
export function schemaMigrations(dialect: SchemaDialect): readonly (readonly string[])[] {
  const { integer, text } = dialect
  const first = [
    `CREATE TABLE datasets (
      name ${text} PRIMARY KEY,
      definition ${text} NOT NULL,
      updated_at_ms ${integer} NOT NULL
    )`,
    `CREATE TABLE nodes (
      node ${text} PRIMARY KEY,
      cache_root ${text} NOT NULL,
      policy ${text} NOT NULL,
      disk ${text} NOT NULL,
      seen_at_ms ${integer} NOT NULL,
      agent ${text}
    )`,
    `CREATE TABLE copies (
      copy_id ${text} PRIMARY KEY,
      dataset ${text} NOT NULL,
      node ${text} NOT NULL,
      version ${text},
      state ${text} NOT NULL CHECK (state IN ('reserved', 'staging', 'ready', 'evicting')),
      origin ${text} NOT NULL,
      source ${text},
      directory ${text} NOT NULL,
      path ${text} NOT NULL,
      charged_bytes ${integer} NOT NULL CHECK (charged_bytes >= 0),
      charged_inodes ${integer} NOT NULL CHECK (charged_inodes >= 0),
      written_bytes ${integer} NOT NULL CHECK (written_bytes >= 0),
      files ${integer} NOT NULL,
      content_bytes ${integer} NOT NULL,
      lock_state ${text},
      last_task ${text},
      last_used_at_ms ${integer} NOT NULL,
      created_at_ms ${integer} NOT NULL,
      ready_at_ms ${integer},
      stripe ${text},
      CHECK (state NOT IN ('staging', 'ready') OR version IS NOT NULL)
    )`,
    // A node may hold a whole version and any of its stripes at once.
    `CREATE UNIQUE INDEX one_staging ON copies (dataset, node, (coalesce(stripe, '')))
      WHERE state IN ('reserved', 'staging')`,
    `CREATE UNIQUE INDEX one_ready ON copies (dataset, node, version, (coalesce(stripe, '')))
      WHERE state = 'ready'`,
    `CREATE INDEX copies_by_node ON copies (node, dataset)`,
    `CREATE TABLE leases (
      lease_id ${text} PRIMARY KEY,
      copy_id ${text} NOT NULL REFERENCES copies (copy_id) ON DELETE CASCADE,
      purpose ${text} NOT NULL CHECK (purpose IN ('use', 'stage', 'transfer')),
      task ${text} NOT NULL,
      holder ${text} NOT NULL,
      created_at_ms ${integer} NOT NULL,
      renewed_at_ms ${integer} NOT NULL,
      expires_at_ms ${integer}
    )`,
    `CREATE UNIQUE INDEX one_lease_per_holder ON leases (copy_id, purpose, task, holder)`,
    `CREATE UNIQUE INDEX one_stager ON leases (copy_id) WHERE purpose = 'stage'`,
    `CREATE INDEX leases_by_task ON leases (task)`,
    `CREATE TABLE events (
      sequence ${dialect.sequenceKey},
      at_ms ${integer} NOT NULL,
      kind ${text} NOT NULL,
      node ${text} NOT NULL,
      dataset ${text} NOT NULL,
      copy_id ${text},
      task ${text},
      reason ${text} NOT NULL,
      detail ${text} NOT NULL
    )`,
    `CREATE INDEX events_by_dataset ON events (dataset, sequence)`,
    `CREATE INDEX events_by_copy ON events (copy_id, sequence)`,
    `CREATE INDEX events_by_time ON events (at_ms)`,
    `CREATE VIEW cache_record (dataset, node, last_task, lock_state, reference_count) AS
      SELECT dataset, node, last_task,
        CASE WHEN lock_state IS NULL THEN 'unlocked' ELSE 'locked' END,
        (SELECT count(*) FROM leases
          WHERE leases.copy_id = copies.copy_id AND purpose <> 'stage'
            AND (expires_at_ms IS NULL OR expires_at_ms > ${dialect.nowMs}))
      FROM copies WHERE state = 'ready'`,
  ]
  // Ties a node's name to a cache root and a machine.
  const identities = [`ALTER TABLE nodes ADD COLUMN identity ${text}`]
  // A whole copy remembers layouts that lost their last stripe.
  const layouts = [`ALTER TABLE copies ADD COLUMN layouts ${text}`]
  // The orders in which a status pages through 100,000 copies and as many leases.
  const order = [`CREATE INDEX copies_in_order ON copies (dataset, node, created_at_ms, copy_id)`]
  const leaseOrder = [`CREATE INDEX leases_in_order ON leases (created_at_ms, lease_id)`]
  // Finds, among ten million events, the history of a rarely seen node and the one event of a failure.
  const findEvents = [
    `CREATE INDEX events_by_node ON events (node, sequence)`,
    `ALTER TABLE events ADD COLUMN failure_id ${text}`,
    `CREATE INDEX events_by_failure ON events (failure_id) WHERE failure_id IS NOT NULL`,
  ]
  // The parties of the task that last used a copy, as a JSON list.
  const parties = [`ALTER TABLE copies ADD COLUMN parties ${text}`]
  // Finds a job's uses among ten million events; only these events are queried by task.
  const findUses = [`CREATE INDEX events_of_uses ON events (task, sequence) WHERE kind = 'leased'`]
  // Sums up a million copies, and finds those used last, without their wide rows.
  const generate = (name: string, condition: string) =>
    `ALTER TABLE copies ADD COLUMN ${name} ${integer}
      GENERATED ALWAYS AS (CASE WHEN ${condition} THEN 1 ELSE 0 END) ${dialect.generated}`
  const sums = [
    generate('has_source', 'source IS NOT NULL'),
    generate('is_striped', 'stripe IS NOT NULL OR layouts IS NOT NULL'),
    `CREATE INDEX copies_by_standing ON copies (node, state, parties, lock_state, has_source, is_striped,
      charged_bytes, charged_inodes, written_bytes)`,
    `CREATE INDEX copies_by_use ON copies (dataset, last_used_at_ms)`,
  ]
  // The few rows of a million that a status and an agent look for every few seconds.
  const inOrder = 'dataset, node, created_at_ms, copy_id'
  const few = [
    `CREATE INDEX copies_moving ON copies (${inOrder}) WHERE state <> 'ready'`,
    `CREATE INDEX copies_moving_by_node ON copies (node, dataset) WHERE state <> 'ready'`,
    `CREATE INDEX copies_striped ON copies (${inOrder}) WHERE is_striped = 1`,
    `CREATE INDEX leases_of_transfers ON leases (created_at_ms, lease_id) WHERE purpose = 'transfer'`,
  ]
  // The leases of a node, and its copies that may go, used longest ago first, among a million copies of the node.
  const onNode = [
    `ALTER TABLE leases ADD COLUMN node ${text} NOT NULL DEFAULT ''`,
    'UPDATE leases SET node = (SELECT node FROM copies WHERE copies.copy_id = leases.copy_id)',
    `CREATE INDEX leases_by_node ON leases (node, created_at_ms, lease_id)`,
    `CREATE INDEX copies_idle_longest ON copies (node, last_used_at_ms)
      WHERE state = 'ready' AND lock_state IS NULL AND has_source = 1`,
  ]
  // The copies of a node whose files a copy of the same source can take. `data` and `data/` are one folder.
  const sources = [
    `ALTER TABLE copies ADD COLUMN source_url ${text}
      GENERATED ALWAYS AS (rtrim(${dialect.sourceUrl}, '/')) ${dialect.generated}`,
    `CREATE INDEX copies_by_source ON copies (node, source_url, dataset)`,
  ]
  // The newest of a million copies of one source.
  const newestOfSource = [
    'DROP INDEX copies_by_source',
    'CREATE INDEX copies_by_source ON copies (node, source_url, ready_at_ms)',
  ]
  const reading = [`ALTER TABLE leases ADD COLUMN read_at_ms ${integer}`]
  // The datasets used last, among a million. And SQLite, without statistics, took the index of sums for the copies of a
  // dataset on a node while that began with the node and the state.
  const walks = [
    'DROP INDEX copies_by_use',
    'CREATE INDEX copies_by_use ON copies (last_used_at_ms, dataset)',
    'DROP INDEX copies_by_standing',
    `CREATE INDEX copies_by_standing ON copies (node, parties, state, lock_state, has_source, is_striped,
      charged_bytes, charged_inodes, written_bytes)`,
  ]
  return [
    first,
    identities,
    layouts,
    order,
    leaseOrder,
    findEvents,
    parties,
    findUses,
    sums,
    few,
    onNode,
    sources,
    newestOfSource,
    reading,
    walks,
  ]
}

/** The newest schema of the record that this dsc reads and writes, in every engine. */
export const RECORD_SCHEMA_VERSION = schemaMigrations({
  text: '',
  integer: '',
  sequenceKey: '',
  nowMs: '',
  sourceUrl: '',
  generated: 'STORED',
}).length
