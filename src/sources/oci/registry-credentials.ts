import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { DscError } from '../../failure/dsc-error.js'
import { tryJson } from '../../model/try-json.js'

type Environment = Readonly<Record<string, string | undefined>>

/** Sent to a registry, or to the server of its tokens, in `Authorization: Basic`. */
export interface RegistryCredentials {
  readonly username: string
  readonly password: string
}

const HELPER_TIMEOUT_MS = 30_000
/** Docker Hub's key in the files below; other registries have their host name. */
const DOCKER_KEYS: Readonly<Record<string, string>> = {
  'registry-1.docker.io': 'https://index.docker.io/v1/',
}

const config = z.looseObject({
  auths: z.record(z.string(), z.looseObject({ auth: z.string().optional() })).optional(),
  credHelpers: z.record(z.string(), z.string()).optional(),
  credsStore: z.string().optional(),
})
const helped = z.looseObject({ Username: z.string(), Secret: z.string() })

/**
 * Finds the credentials that docker, podman and oras would use for a registry: in the file REGISTRY_AUTH_FILE, else in
 * `config.json` of DOCKER_CONFIG (default `~/.docker`), else in podman's `containers/auth.json` of XDG_RUNTIME_DIR;
 * also through the credential helper that a file names. Undefined: none. Rejects with CONFIG_INVALID for a file or a
 * helper that cannot be read.
 * Source: docker's `config.json`, containers-auth.json(5).
 */
export async function findRegistryCredentials(
  registry: string,
  environment: Environment,
  homeDirectory: string,
): Promise<RegistryCredentials | undefined> {
  const { REGISTRY_AUTH_FILE: named, DOCKER_CONFIG: folder, XDG_RUNTIME_DIR: runtime } = environment
  const key = DOCKER_KEYS[registry] ?? registry
  const paths = named
    ? [named]
    : [
        join(folder || join(homeDirectory, '.docker'), 'config.json'),
        ...(runtime ? [join(runtime, 'containers', 'auth.json')] : []),
      ]
  for (const path of paths) {
    const { auths = {}, credHelpers = {}, credsStore } = await readConfig(path, { isNamed: path === named })
    const helper = credHelpers[key] ?? credsStore
    const found = helper === undefined ? decode(auths[key]?.auth) : await askHelper(helper, key, path)
    if (found) return found
  }
  return undefined
}

async function readConfig(path: string, { isNamed }: { readonly isNamed: boolean }) {
  try {
    return config.parse(JSON.parse(await readFile(path, 'utf8')))
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!isNamed && (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES')) return {}
    const found = code === undefined ? 'another kind of file' : message
    throw unreadable(`${path}: expected credentials of registries, found ${found}`, error)
  }
}

/** Base64 of `user:password`. */
function decode(auth: string | undefined): RegistryCredentials | undefined {
  const [, username, password] = /^([^:]+):(.*)$/s.exec(Buffer.from(auth ?? '', 'base64').toString()) ?? []
  return username === undefined || !password ? undefined : { username, password }
}

/** Speaks the protocol of docker's credential helpers: the registry on stdin, JSON on stdout. */
async function askHelper(
  helper: string,
  registry: string,
  path: string,
): Promise<RegistryCredentials | undefined> {
  if (!/^[A-Za-z0-9_-]+$/.test(helper)) throw unreadable(`${path}: ${JSON.stringify(helper)} names no helper`)
  const program = `docker-credential-${helper}`
  const output = await new Promise<string>((resolve, reject) => {
    const child = execFile(program, ['get'], { timeout: HELPER_TIMEOUT_MS }, (error, stdout) => {
      if (error === null || /credentials not found/i.test(stdout)) resolve(stdout)
      else reject(unreadable(`${program}, which ${path} names: ${stdout.trim() || error.message}`, error))
    })
    child.stdin?.on('error', () => {}) // a helper that ended has said why
    child.stdin?.end(registry)
  })
  if (/credentials not found/i.test(output)) return undefined
  const parsed = helped.safeParse(tryJson(output))
  if (!parsed.success) throw unreadable(`${program}: expected JSON with Username and Secret`)
  const { Username: username, Secret: password } = parsed.data
  if (username !== '<token>') return { username, password }
  throw unreadable(`${program} gives an identity token for ${registry}, which dsc cannot use`)
}

function unreadable(message: string, cause?: unknown): DscError {
  return new DscError('CONFIG_INVALID', message, {
    cause,
    hint: 'docker login (or podman, oras login) to the registry again, or set `anonymous: true` for a public one',
  })
}
