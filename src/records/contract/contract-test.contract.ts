import { type TestContext, test } from 'node:test'
import type { RecordStore } from './record-store.js'

/** Opens a new empty record. */
export type OpenRecord = (context: TestContext) => Promise<OpenedRecord>

/** Clients of one record, closed at the end of the test. */
export interface OpenedRecord {
  readonly record: RecordStore
  readonly second: RecordStore
  /** Rows of the view `cache_record`, read without the adapter. */
  readonly readView: () => Promise<readonly unknown[]>
}

/** Opens the clients of one record with `openClient`. */
export async function openClients(
  context: TestContext,
  openClient: () => Promise<RecordStore>,
): Promise<Omit<OpenedRecord, 'readView'>> {
  const record = await openClient()
  context.after(() => record.close())
  const second = await openClient()
  context.after(() => second.close())
  return { record, second }
}

/** A test of the contract for one engine; its body gets a new record. */
export function contractTest(engine: string, open: OpenRecord) {
  return (
    title: string,
    body: (...opened: [RecordStore, RecordStore, OpenedRecord['readView']]) => Promise<void>,
  ) => {
    void test(`${engine} record ${title}`, async (context) => {
      const { record, second, readView } = await open(context)
      await body(record, second, readView)
    })
  }
}
