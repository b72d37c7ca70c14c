// What to do about each failure: the last column of docs/reference/errors.md. A failure without advice, or advice
// without a failure, fails `npm run docs`.
export const ADVICE = {
  INTERNAL:
    'Report the stack, the command and `dsc --version`. Copies and record are unchanged; you can retry.',
  USAGE: 'See `--help` of the command.',
  CONFIG_INVALID:
    'Correct the named line of `dsc.yaml`, or the variable. `dsc config` shows which file counts.',
  DATASET_UNKNOWN:
    'Check `dsc dataset ls`, then `dsc dataset add`, or use a URL. Often another `dsc.yaml` was found.',
  DATASET_IN_USE: 'Evict its copies, then run `dsc dataset rm` again.',
  CONFIRMATION_REQUIRED: 'There is no terminal to ask. Look with `--dry-run`, then add `--yes`.',
  DEADLINE_PASSED: '`--deadline` ended it. Run it again: it continues.',
  INTERRUPTED: 'A signal ended it. Run it again: it continues.',
  DOCTOR_FAILED: 'Each failed check says what to do.',
  COPY_NOT_FOUND: 'Run `dsc prepare`. `dsc why` says whether the copy was evicted.',
  COPY_IN_USE: '`dsc leases --dataset <name>` names the holders. Wait, release, or unlock.',
  LEASE_NOT_FOUND: 'The lease has ended, or its id is mistyped: `dsc leases`.',
  STAGING_ELSEWHERE: 'Leave out `--no-wait` to wait for the other process.',
  COPY_DAMAGED: 'Run `dsc verify <name> --repair`. If it happens again, test the disk.',
  VERSION_GONE:
    'The source changed, and no whole copy is on this node. Verify on the node that is named, or restore the objects.',
  QUOTA_EXCEEDED:
    'Wait for the holders that are named, release, unlock, use another node, or raise [the limit](../guides/quotas.md).',
  SYSTEM_LIMIT: 'Raise the limit that is named: `ulimit -n 1024`, `ulimit -f unlimited`.',
  IO_FAILED: 'Check the named path, its mount and `dmesg`. Run it again: it continues.',
  DISK_FULL: 'Free some space. `cache.minFree` keeps it free.',
  CACHE_ROOT_INVALID:
    'Mount the disk, [open the folder](../start/node.md#open-an-existing-cache-to-a-group), or move away the file that is named.',
  RECORD_UNAVAILABLE:
    'SQLite: check write access to the file and its folder. PostgreSQL: check server, host and password.',
  RECORD_NEWER: 'Upgrade this dsc.',
  RECORD_ON_NETWORK_FS: 'Set `record:` to a local disk or to `postgres://…`.',
  RECORD_NOT_EMPTY: 'Name an empty database for `dsc record migrate`.',
  NODE_TAKEN:
    'Set `node:`, or run [`dsc record claim-node`](../guides/cluster.md#if-a-node-changes-its-name-or-disk).',
  NOT_PERMITTED: 'Ask root, or a member of `agent.admins`. [Who may do what](../understand/security.md).',
  SERVICE_UNREACHABLE: 'Start the service of the node (`systemctl start dsc-agent`), or set `DSC_DOOR=none`.',
  TOO_MANY_REQUESTS: 'Wait until some of your requests are done, then repeat.',
  SOURCE_NOT_FOUND: 'Check the URL, `endpoint:`, and `pathStyle: true` for servers other than AWS.',
  SOURCE_EMPTY: 'Check the prefix (a folder: `data` means `data/`), `include` and `exclude`.',
  SOURCE_DENIED:
    'Check `aws sts get-caller-identity` as the user who runs dsc. Public buckets need `anonymous: true`.',
  SOURCE_UNREACHABLE:
    'Check host, port, [proxy and certificate](../guides/sources.md#proxies-and-certificates). Retry: it continues.',
  SOURCE_THROTTLED: 'Lower `stage.maxRequests`, or let [nodes share copies](../guides/cluster.md).',
  SOURCE_STALLED: 'Look for a proxy or firewall. For a slow server, raise `stage.stallTimeout`.',
  SOURCE_TRUNCATED: 'Look for a proxy between this node and the source.',
  SOURCE_CHANGED: 'Run `dsc prepare <name> --refresh`. If it happens again, somebody is still uploading.',
  CHECKSUM_MISMATCH: 'Upload the named object again, or look for what changes bytes on the way.',
  KEY_UNSAFE: '`exclude:` the key: it [cannot be a path](../guides/sources.md#keys-that-cannot-be-paths).',
  AGENT_UNREACHABLE:
    'Start the agent, or check the firewall and `agent.advertise`. `dsc doctor` asks every agent.',
  AGENT_REFUSED: 'Begin `agent.tokenFile` with the same token on every node. A `read` token cannot prepare.',
  AGENT_UNSAFE: 'Set `agent.tokenFile`, or listen on 127.0.0.1.',
  NODES_FAILED: 'The message has a reason for each node. Run it again: it does only what is missing.',
  FEED_STATE_MISMATCH: 'Use the data, seed and order that the state was saved with.',
  FEED_MEMORY: 'Raise `--memory` to the size in the hint. In Docker, run with `--shm-size`.',
  FEED_PROTOCOL:
    'Use the same version of dsc on both sides, a socket of your own, and one loader for each worker.',
  FEED_SAMPLE_LOST: 'Run `dsc verify --repair` on the node with the data, or add `--on-error skip`.',
  FEED_GONE: 'Start the feed again; `error.state` continues with the next batch.',
  PEER_LOST: 'The message names the rank. Join again with the others, or start from a checkpoint.',
  EXCHANGE_MISMATCH: 'Give all ranks the same plan file.',
  PLAN_INFEASIBLE: 'Use the budget in the message, or a smaller batch.',
  MEMORY_FILE_INVALID: 'Run the profiled program by itself first.',
  PLAN_MISMATCH: 'Profile again, then plan with `--feedback`.',
  HOST_MEMORY_SHORT: 'Run fewer workers on this host.',
  PARAMS_REFUSED: 'Check token, job and step: the message says which.',
  PARAMS_UNREACHABLE: 'Start `dsc params serve`, or name it with `--server`.',
}
