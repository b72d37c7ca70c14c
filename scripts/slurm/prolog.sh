#!/bin/sh
# Slurm prolog (slurm.conf: Prolog=…, PrologFlags=Alloc): stages what a job's comment asks for, before it starts:
#   sbatch --comment="my run dsc:flowers,birds" job.sh
# Whatever fails here, the job starts and the node stays up: a prolog that fails would drain the node. The job's
# own `dsc prepare flowers` finds the copy ready, or goes on where this stopped, or says what is wrong. What failed
# is told in syslog and in the job's AdminComment (scontrol show job). `scancel` ends it within seconds.
# Settings, in /etc/default/dsc or in `settings` beside this file: DSC (the command), DSC_DEADLINE (seconds),
# DSC_FEATURES=yes (adds the node's name to its features, for `dsc hint --prefer`).
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
export PATH
DSC=dsc
DSC_DEADLINE=300
DSC_FEATURES=no
here=$(dirname "$0")
for settings in /etc/default/dsc "$here/settings"; do
  # shellcheck source=/dev/null
  if [ -r "$settings" ]; then . "$settings"; fi
done

# Prints one field of the job, as squeue's --format has it.
ask_job() {
  timeout 10 squeue --noheader --jobs="$SLURM_JOB_ID" --format="$1" 2>/dev/null
}

tell() {
  logger -t dsc-prolog -- "job $SLURM_JOB_ID: $1" 2>/dev/null
}

# So that jobs can prefer this node by its name.
add_feature() {
  node=${SLURMD_NODENAME:-$(hostname -s)}
  shown=$(timeout 10 scontrol show node --oneliner "$node" 2>/dev/null) || return
  available=$(printf '%s' "$shown" | sed -n 's/.* AvailableFeatures=\([^ ]*\).*/\1/p')
  active=$(printf '%s' "$shown" | sed -n 's/.* ActiveFeatures=\([^ ]*\).*/\1/p')
  case ",$active," in
    ,, | *",$node,"*) return ;;
  esac
  timeout 10 scontrol update NodeName="$node" AvailableFeatures="$(join_feature "$available" "$node")" \
    ActiveFeatures="$(join_feature "$active" "$node")" 2>/dev/null
}

join_feature() {
  case ",$1," in
    ",(null),") printf '%s' "$2" ;;
    *",$2,"*) printf '%s' "$1" ;;
    *) printf '%s,%s' "$1" "$2" ;;
  esac
}

# Ends process $1 once the job is cancelled. Asks seldom: every node of every job does.
end_with_job() {
  while sleep 4; do
    case $(ask_job %T) in
      '' | PENDING | CONFIGURING | RUNNING) ;;
      *) kill "$1" && return ;;
    esac
  done
}

if [ "$DSC_FEATURES" = yes ]; then add_feature; fi

# Only characters of dataset names get through, so nothing in a comment can become a command.
datasets=$(ask_job %k | grep -oE '(^|[^A-Za-z0-9._-])dsc:[A-Za-z0-9._,-]+' | sed 's/.*dsc://; s/[.,-]*$//' | tr ',' '\n')
if [ -z "$datasets" ]; then exit 0; fi
said=$(mktemp) || exit 0
trap 'rm -f "$said"' EXIT

for dataset in $datasets; do
  # `timeout` is for the case that dsc itself hangs; --deadline is how long it may take.
  # shellcheck disable=SC2086
  timeout --kill-after=5 $((DSC_DEADLINE + 15)) \
    $DSC prepare "$dataset" --prolog --deadline "${DSC_DEADLINE}s" --quiet >"$said" 2>&1 &
  staging=$!
  end_with_job "$staging" >/dev/null 2>&1 &
  watching=$!
  wait "$staging"
  kill "$watching" 2>/dev/null
  tell "$(cat "$said")"
  problem=$(grep '^dsc: ' "$said" | head -n 1 | cut -c -500)
  if [ -n "$problem" ]; then
    timeout 10 scontrol update JobId="$SLURM_JOB_ID" AdminComment="$problem" 2>/dev/null
  fi
  case $(ask_job %T) in
    '' | PENDING | CONFIGURING | RUNNING) ;;
    *) break ;;
  esac
done
exit 0
