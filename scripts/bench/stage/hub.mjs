// A hub with the datasets `bench/<set>`, served by nginx from the files of a store: what dsc and huggingface_hub ask of
// the Hub's API, and files by a redirect that tells their SHA-256, as the Hub answers clients without Xet.
import { createHash } from 'node:crypto'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startNginx } from '../harness/stores.mjs'

const COMMIT = '0123456789abcdef0123456789abcdef01234567'

/** Serves the sets of the bucket `bench` that lie in `folder`. */
export async function startHub(bench, folder, sets) {
  const own = bench.makeFolder('hub')
  const digests = sets.flatMap(({ name }) => describeSet(own, join(folder, 'bench', name), name))
  writeFileSync(join(own, 'digests'), digests.join('\n'))
  return startNginx(bench, folder, {
    http: `map_hash_max_size 100000; map_hash_bucket_size 128;
      map $set/$path $sha256 { include ${own}/digests; }`,
    server: `location ~ ^/api/datasets/bench/(?<set>[^/]+)/(?<what>revision|tree)/ {
        default_type application/json; alias ${own}/$set.$what; }
      location ~ ^/datasets/bench/(?<set>[^/]+)/resolve/[^/]+/(?<path>.+)$ {
        add_header X-Repo-Commit ${COMMIT} always; add_header X-Linked-Etag '"$sha256"' always;
        return 302 http://localhost:$server_port/bench/$set/$path; }`,
  })
}

/** Writes the answers about the set that lies in `root`, and returns a line with the digest of each file. */
function describeSet(own, root, name) {
  const files = globSync('**/*.bin', { cwd: root }).map((path) => {
    const body = readFileSync(join(root, path))
    return { path, size: body.length, sha256: createHash('sha256').update(body).digest('hex') }
  })
  const tree = files.map(({ path, size, sha256: oid }) => {
    return { type: 'file', path, size, oid: oid.slice(0, 40), lfs: { oid, size, pointerSize: 130 } }
  })
  const siblings = files.map(({ path }) => ({ rfilename: path }))
  const revision = { _id: '0', id: `bench/${name}`, sha: COMMIT, private: false, tags: [], siblings }
  writeFileSync(join(own, `${name}.revision`), JSON.stringify(revision))
  writeFileSync(join(own, `${name}.tree`), JSON.stringify(tree))
  return files.map(({ path, sha256 }) => `${name}/${path} ${sha256};`)
}
