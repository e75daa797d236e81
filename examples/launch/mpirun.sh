#!/bin/sh
# Trains on several ranks with Open MPI's mpirun: on this machine, or on those of a host file.
#
#   examples/launch/mpirun.sh RANKS RECIPE [KEY=VALUE...]
#   HOSTS=hosts.txt examples/launch/mpirun.sh 8 RECIPE [KEY=VALUE...]
#
# On one machine "snug train RECIPE devices=RANKS" does the same. A host file has a line for each machine, with the number of ranks
# there: "node1 slots=4". Then each machine needs ssh without a password, the same snug under the same path, and the folder of the run
# (output_dir) on a file system that all of them see.
set -eu
[ $# -ge 2 ] || { sed -n '2,5p' "$0" >&2; exit 2; }
ranks=$1
shift

# mpirun refuses to run as root, which containers often are, unless both are set.
if [ "$(id -u)" -eq 0 ]; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
fi

# Where mpirun is asked to end it passes the signal on, and kills what is still there one second later; ranks need longer to save a checkpoint.
export OMPI_MCA_odls_base_sigkill_timeout="${OMPI_MCA_odls_base_sigkill_timeout:-60}"

# --bind-to none: a rank computes with several threads, and mpirun binds small numbers of ranks to one core each otherwise.
# --oversubscribe: as many ranks as are asked for, also where mpirun counts fewer slots.
if [ -n "${HOSTS:-}" ]; then
  exec mpirun -n "$ranks" --hostfile "$HOSTS" --bind-to none "${SNUG:-snug}" train "$@"
fi
exec mpirun -n "$ranks" --bind-to none --oversubscribe "${SNUG:-snug}" train "$@"
