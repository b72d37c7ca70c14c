#!/bin/sh
# Slurm epilog (slurm.conf: Epilog=…): ends the leases of the job on this node. Never fails; what it cannot end now,
# `dsc cleanup` and `dsc agent` end later, when squeue no longer lists the job.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
DSC=dsc
here=$(dirname "$0")
for settings in /etc/default/dsc "$here/settings"; do
  # shellcheck source=/dev/null
  if [ -r "$settings" ]; then . "$settings"; fi
done
# shellcheck disable=SC2086
said=$(timeout --kill-after=5 30 $DSC release --all --quiet 2>&1)
logger -t dsc-epilog -- "job $SLURM_JOB_ID: $said" 2>/dev/null
exit 0
