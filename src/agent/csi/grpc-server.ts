import { chmodSync, lstatSync, mkdirSync, unlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from '@grpc/grpc-js'
import { loadSync, type ServiceDefinition } from '@grpc/proto-loader'
import { DscError } from '../../failure/dsc-error.js'
import { describeCsiFailure } from './csi-failure.js'

/** The protocols, as they are published: they lie beside the sources, in the package and in the executable alike. */
const FOLDER = fileURLToPath(new URL('../../../src/agent/csi/proto', import.meta.url))

/** Answers one call. `deadlineMs`: Unix epoch at which the caller gives up; infinite if it has none. */
export type Answer = (request: never, deadlineMs: number) => Promise<object> | object

/** Method → answer. A method that is not named is answered as unimplemented. */
export type Answers = Readonly<Record<string, Answer>>

/** A gRPC server on a Unix socket. */
export interface GrpcServer {
  /** Refuses new calls, drops those under way, and removes the socket. */
  stop(): void
}

/**
 * Reads a protocol: the definitions of its services, by their full names. Fields are in camel case and always there,
 * enums are their names, and 64-bit numbers are numbers.
 */
export function readProtocol(
  file: 'csi.proto' | 'registration.proto',
): Readonly<Record<string, ServiceDefinition>> {
  const definitions = loadSync(`${FOLDER}/${file}`, {
    keepCase: false,
    longs: Number,
    enums: String,
    defaults: true,
    oneofs: true,
  })
  return definitions as Readonly<Record<string, ServiceDefinition>>
}

/** Serves `services` (full name → answers) of a protocol at the socket `path`, to its owner and root alone. */
export async function startGrpcServer(options: {
  readonly path: string
  readonly protocol: 'csi.proto' | 'registration.proto'
  readonly services: Readonly<Record<string, Answers>>
  readonly note: (sentence: string) => void
}): Promise<GrpcServer> {
  const { path, services, note } = options
  const protocol = readProtocol(options.protocol)
  const server = new Server()
  for (const [name, answers] of Object.entries(services)) {
    const handlers = Object.entries(answers).map(([method, answer]) => [method, handle(method, answer, note)])
    server.addService(protocol[name]!, Object.fromEntries(handlers))
  }
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o750 })
    removeSocket(path)
    await new Promise<void>((resolve, reject) => {
      const credentials = ServerCredentials.createInsecure() // the file's mode decides who may call
      server.bindAsync(`unix:${path}`, credentials, (error) => (error ? reject(error) : resolve()))
    })
    chmodSync(path, 0o600)
  } catch (error) {
    server.forceShutdown()
    throw new DscError('CONFIG_INVALID', `cannot listen at ${path}: ${(error as Error).message}`, {
      hint: 'start dsc agent --csi as root; it becomes the owner of the cache',
      cause: error,
    })
  }
  return {
    stop() {
      server.forceShutdown()
      removeSocket(path)
    },
  }
}

function handle(method: string, answer: Answer, note: (sentence: string) => void) {
  return (call: ServerUnaryCall<unknown, object>, send: sendUnaryData<object>): void => {
    const deadline = call.getDeadline()
    const deadlineMs = deadline instanceof Date ? deadline.getTime() : deadline
    Promise.resolve()
      .then(() => answer(call.request as never, deadlineMs))
      .then(
        (response) => send(null, response),
        (error: unknown) => {
          const { status: name, message } = describeCsiFailure(error)
          note(`${method}: ${name}: ${message}`)
          send({ code: status[name], details: message })
        },
      )
  }
}

/** An agent that was killed leaves its socket behind. */
function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket()) unlinkSync(path)
}
