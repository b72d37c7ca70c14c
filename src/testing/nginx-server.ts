import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { findFreePort } from './free-port.js'
import { temporaryDirectory } from './temporary-directory.js'
import { waitFor } from './world.js'

const PATH = `${process.env.PATH}:/usr/sbin`

/** A real web server. */
export interface NginxServer {
  /** `http://127.0.0.1:port`. */
  readonly origin: string
  /**
   * The folder it serves: `plain/` without ranges and etags, `secret/` to nobody, everything else with nginx's
   * defaults.
   */
  readonly folder: string
}

/**
 * Starts nginx on its own folder, until the test ends. `/signed/PATH` redirects to `/PATH?signature=…`, with a new
 * signature each time.
 */
export async function startNginx(context: Pick<TestContext, 'after'>): Promise<NginxServer> {
  const own = await temporaryDirectory(context)
  const folder = join(own, 'files')
  mkdirSync(folder)
  const port = await findFreePort()
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  const config = `
daemon off; master_process off; error_log stderr; pid ${own}/pid;
events {}
http {
  access_log off; default_type application/octet-stream;
  ${places.map((name) => `${name}_temp_path ${own}/${name};`).join(' ')}
  server {
    listen 127.0.0.1:${port}; root ${folder}; absolute_redirect off;
    location /plain/ { max_ranges 0; etag off; }
    location /secret/ { return 403; }
    location = /round { return 302 /round; }
    location ~ ^/signed/(.*)$ { return 302 /$1?signature=$request_id; }
  }
}
`
  writeFileSync(join(own, 'nginx.conf'), config)
  const server = spawn('nginx', ['-p', own, '-c', join(own, 'nginx.conf')], {
    stdio: 'ignore',
    env: { ...process.env, PATH },
  })
  context.after(async () => {
    const ended = once(server, 'exit')
    if (server.kill('SIGKILL')) await ended
  })
  const origin = `http://127.0.0.1:${port}`
  await waitFor('nginx', () => fetch(origin).catch(() => undefined))
  return { origin, folder }
}
