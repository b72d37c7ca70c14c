#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=…, PrologFlags=Alloc): stages what a job's comment asks for, before it starts:
#   sbatch --comment=dsc:flowers,birds job.sh
# Whatever fails here, the job starts and the node stays up: a prolog that fails would drain the node. The job's
# own `dsc prepare flowers` finds the copy ready, or goes on where this stopped, or says what is wrong.
# Settings, in /etc/default/dsc or in `settings` beside this file: DSC (the command), DSC_DEADLINE (seconds).
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
DSC=dsc
DSC_DEADLINE=300
here=$(dirname "$0")
for settings in /etc/default/dsc "$here/settings"; do
  # shellcheck source=/dev/null
  if [ -r "$settings" ]; then . "$settings"; fi
done

# Only characters of dataset names get through, so nothing in a comment can become a command.
comment=$(timeout 10 scontrol show job --oneliner "$SLURM_JOB_ID" 2>/dev/null | tr ' ' '\n' | sed -n 's/^Comment=//p')
datasets=$(printf '%s' "$comment" | grep -o 'dsc:[A-Za-z0-9._,-]*' | head -n 1 | cut -d: -f2 | tr ',' ' ')

for dataset in $datasets; do
  # `timeout` is for the case that dsc itself hangs; --deadline is how long it may take.
  # shellcheck disable=SC2086
  said=$(timeout --kill-after=5 $((DSC_DEADLINE + 15)) \
    $DSC prepare "$dataset" --prolog --deadline "${DSC_DEADLINE}s" --quiet 2>&1)
  logger -t dsc-prolog -- "job $SLURM_JOB_ID: $said" 2>/dev/null
done
exit 0
