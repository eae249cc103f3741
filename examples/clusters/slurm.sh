#!/bin/bash
# Slurm, on a login node: bash slurm.sh; needs pip install "contrastbench[slurm]"
# With --slurm print=true it shows the script and submits nothing, which works on any machine.
# Cells of other needs are other jobs; equal jobs share the cells by claims in results/.
set -euo pipefail
bench plan my.yaml
bench sweep my.yaml --only domain=tabular --jobs 4 --slurm jobs=2 --slurm time=120 \
    --slurm cpus_per_task=4 --slurm mem=8G
bench sweep my.yaml --only domain=graph --jobs 4 --slurm jobs=4 --slurm time=720 \
    --slurm cpus_per_task=8 --slurm mem=32G --slurm gpus_per_node=1 --slurm partition=gpu
