#!/usr/bin/env bash
# PostgreSQL and S3 for the pods, in the namespace hk8s.
set -euo pipefail
. "$(dirname "$0")/env.sh"
here=$(cd "$(dirname "$0")" && pwd)
start services nsenter --net=/run/netns/hk8s node "$here/services.mjs" "$CHECKOUT" "$W/services" $API
for _ in $(seq 60); do in_net curl -s -o /dev/null http://$API:9000/ && break; sleep 1; done
in_net node "$here/put-objects.mjs" "$CHECKOUT" http://$API:9000
for _ in $(seq 30); do
  (cd "$CHECKOUT" && in_net node -e '
    const { Client } = require("pg")
    const client = new Client(`postgres://dsc@${process.argv[1]}/postgres`)
    client.connect().then(() => client.query("CREATE DATABASE dsc")).then(() => process.exit(0), (error) => process.exit(error.code === "42P04" ? 0 : 1))' $API) && break
  sleep 1
done
