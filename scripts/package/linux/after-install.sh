#!/bin/sh
# Makes the user of the node's service, and its cache. Others ask the service.
set -e
if ! getent group dsc >/dev/null; then groupadd --system dsc; fi
if ! getent passwd dsc >/dev/null; then
  useradd --system --gid dsc --home-dir /var/lib/dsc --no-create-home --shell /usr/sbin/nologin dsc
fi
if [ ! -d /var/lib/dsc ]; then install -d -m 0755 -o dsc -g dsc /var/lib/dsc; fi
if [ ! -d /var/lib/dsc/cache ]; then install -d -m 0755 -o dsc -g dsc /var/lib/dsc/cache; fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart dsc-agent.service # an upgrade; clients wait meanwhile
fi
if [ ! -e /etc/dsc/dsc.yaml ]; then echo "sudo dsc setup makes this machine a node that its users share"; fi
