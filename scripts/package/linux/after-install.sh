#!/bin/sh
# Makes the user of the agent and of the cleanup, and its cache. Others ask the agent.
set -e
if ! getent group dsc >/dev/null; then groupadd --system dsc; fi
if ! getent passwd dsc >/dev/null; then
  useradd --system --gid dsc --home-dir /var/lib/dsc --no-create-home --shell /usr/sbin/nologin dsc
fi
if [ ! -d /var/lib/dsc ]; then install -d -m 0755 -o dsc -g dsc /var/lib/dsc; fi
if [ ! -d /var/lib/dsc/cache ]; then install -d -m 0755 -o dsc -g dsc /var/lib/dsc/cache; fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart dsc-agent.service
fi
