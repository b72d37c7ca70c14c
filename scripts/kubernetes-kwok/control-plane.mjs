// etcd, apiserver, controller manager, scheduler, kwok and Kueue as processes of this one, at 10.98.0.1.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const HOST = '10.98.0.1'
const API = `https://${HOST}:6443`

/** Starts the control plane with its state under `folder`, which is emptied. */
export async function startControlPlane(folder) {
  rmSync(folder, { recursive: true, force: true })
  for (const each of ['pki', 'etcd', 'log', 'kueue']) mkdirSync(join(folder, each), { recursive: true })
  makeCertificates(folder)
  const start = (name, ...words) => {
    const log = openSync(join(folder, 'log', `${name}.log`), 'w')
    const child = spawn(words[0], words.slice(1), { cwd: join(folder, 'pki'), stdio: ['ignore', log, log] })
    child.on('exit', (code) => console.error(`${name} ended with ${code}: ${folder}/log/${name}.log`))
  }
  const etcd = 'http://127.0.0.1:2379'
  start(
    'etcd',
    'etcd',
    '--data-dir',
    join(folder, 'etcd'),
    '--unsafe-no-fsync',
    '--log-level',
    'warn',
    ...[
      '--listen-client-urls',
      etcd,
      '--advertise-client-urls',
      etcd,
      '--listen-peer-urls',
      'http://127.0.0.1:2380',
    ],
  )
  start(
    'apiserver',
    'kube-apiserver',
    '--etcd-servers',
    etcd,
    '--advertise-address',
    HOST,
    '--bind-address',
    '0.0.0.0',
    ...[
      '--service-cluster-ip-range',
      '10.96.0.0/24',
      '--tls-cert-file',
      'api.crt',
      '--tls-private-key-file',
      'api.key',
    ],
    ...[
      '--client-ca-file',
      'ca.crt',
      '--service-account-key-file',
      'sa.pub',
      '--service-account-signing-key-file',
      'sa.key',
    ],
    ...[
      '--service-account-issuer',
      'https://kubernetes.default.svc',
      '--authorization-mode',
      'RBAC',
      '--profiling=false',
    ],
    ...[
      '--disable-admission-plugins',
      'TaintNodesByCondition', // a controller would have to take the taint of new nodes away
      '--max-requests-inflight',
      '800',
      '--max-mutating-requests-inflight',
      '400',
    ],
  )
  const admin = makeClient(folder)
  for (let tries = 0; !(await admin.isReady()); tries++) {
    if (tries > 240) throw new Error(`no apiserver: ${folder}/log/apiserver.log`)
    await sleep(1000)
  }
  const config = [
    '--kubeconfig',
    'admin.conf',
    '--leader-elect=false',
    '--kube-api-qps=200',
    '--kube-api-burst=400',
  ]
  start(
    'manager',
    'kube-controller-manager',
    ...config,
    '--use-service-account-credentials=false',
    ...['--service-account-private-key-file', 'sa.key', '--root-ca-file', 'ca.crt'],
    ...['--controllers', 'job,serviceaccount,serviceaccount-token,garbagecollector,namespace'],
  )
  start('scheduler', 'kube-scheduler', ...config)
  return { admin, start }
}

function makeCertificates(folder) {
  const pki = join(folder, 'pki')
  execFileSync(
    'bash',
    [
      '-euc',
      `
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 30 -subj /CN=ca 2>/dev/null
    sign() {
      openssl req -newkey rsa:2048 -nodes -keyout "$1.key" -out "$1.csr" -subj "$2" 2>/dev/null
      openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -out "$1.crt" -days 30 -extfile <(printf %s "$3") 2>/dev/null
    }
    sign api /CN=api "subjectAltName=IP:${HOST},IP:127.0.0.1,IP:10.96.0.1"
    sign admin /O=system:masters/CN=admin basicConstraints=CA:FALSE
    openssl genrsa -out sa.key 2048 2>/dev/null && openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
    cp api.crt tls.crt && cp api.key tls.key
    cp tls.crt tls.key /etc/kueue/metrics/certs/`,
    ],
    { cwd: pki },
  )
  writeFileSync(
    join(pki, 'admin.conf'),
    `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "${API}", certificate-authority: ${pki}/ca.crt}}]
users: [{name: u, user: {client-certificate: ${pki}/admin.crt, client-key: ${pki}/admin.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`,
  )
}

/** kubectl as the administrator. */
function makeClient(folder) {
  const kubeconfig = join(folder, 'pki/admin.conf')
  const kubectl = (words, input) =>
    execFileSync('kubectl', ['--kubeconfig', kubeconfig, ...words], {
      input,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'pipe'],
      maxBuffer: 1 << 28,
    })
  return {
    kubectl,
    kubeconfig,
    apply: (objects) =>
      kubectl(
        ['create', '--save-config=false', '-f', '-'],
        JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
      ),
    list: (kind, namespace) => JSON.parse(kubectl(['get', kind, '-n', namespace, '-o', 'json'])).items,
    label: (node, key) =>
      new Promise((resolve, reject) => {
        const read = (name) => readFileSync(join(folder, 'pki', name))
        const options = {
          method: 'PATCH',
          ca: read('ca.crt'),
          cert: read('admin.crt'),
          key: read('admin.key'),
          headers: { 'content-type': 'application/merge-patch+json' },
        }
        request(`${API}/api/v1/nodes/${node}`, options, (answer) => answer.resume().on('end', resolve))
          .on('error', reject)
          .end(JSON.stringify({ metadata: { labels: { [key]: 'ready' } } }))
      }),
    async isReady() {
      try {
        return kubectl(['get', '--raw', '/readyz']) === 'ok'
      } catch {
        return false
      }
    },
  }
}
