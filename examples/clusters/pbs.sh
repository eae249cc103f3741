#!/bin/bash
# PBS (OpenPBS, PBS Professional): qsub pbs.sh
# The jobs of the array share the cells by claims in results/, on a shared folder.
#PBS -N sweep-my
#PBS -J 0-3
#PBS -l select=1:ncpus=4:ngpus=1:mem=32gb
#PBS -l walltime=12:00:00
#PBS -r y
#PBS -j oe

cd "$PBS_O_WORKDIR" || exit
# PBS kills soon after its SIGTERM, so ours comes ten minutes before the walltime. The sweep writes
# checkpoints and ends with 143; one job of the array submits the array again.
timeout --preserve-status --signal=TERM 710m bench sweep my.yaml --jobs 4 --results results
code=$?
if [ "$code" = 143 ] && [ "$PBS_ARRAY_INDEX" = 0 ]; then
    qsub pbs.sh
fi
exit "$code"
