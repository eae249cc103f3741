#!/bin/bash
# Slurm with Apptainer: sbatch slurm-apptainer.sh
# Build the image once: apptainer build contrastbench.sif docker-daemon:contrastbench:latest
#SBATCH --job-name=sweep-my
#SBATCH --array=0-3
#SBATCH --cpus-per-task=4
#SBATCH --gpus-per-node=1
#SBATCH --mem=32G
#SBATCH --time=12:00:00
#SBATCH --signal=TERM@90
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%A_%a.log

# SIGTERM reaches the step 90 s before the time limit: the sweep writes checkpoints, ends with 143,
# and the job is queued again.
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" apptainer exec --nv --bind "$PWD" contrastbench.sif \
    bench sweep my.yaml --jobs 4 --results results
code=$?
if [ "$code" = 143 ] && [ "${SLURM_RESTART_COUNT:-0}" -lt 100 ]; then
    scontrol requeue "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID"
fi
exit "$code"
