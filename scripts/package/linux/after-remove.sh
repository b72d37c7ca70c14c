#!/bin/sh
# A purge (of the deb) deletes what `dsc setup` wrote, and never data.
set -e
if [ "$1" = purge ]; then rm -rf /etc/dsc /etc/systemd/system/dsc-agent.service.d; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
