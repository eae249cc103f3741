#!/bin/bash
# Slurm, on a login node: bash slurm.sh
# An array of jobs for each class of cells; equal jobs share the cells by claims in results/.
set -euo pipefail
bench plan my.yaml --resources classes.yaml
bench sweep my.yaml --resources classes.yaml --jobs 4 --slurm partition=gpu
