#!/bin/sh
# Stops the service, but not on an upgrade (deb: "upgrade", rpm: 1). What was staged stays: deleting it is not ours.
set -e
rm -f /usr/lib/dsc/*/.checked # written by root's first run: the folder would stay
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then systemctl disable --now dsc-agent.service || true; fi
    ;;
esac
