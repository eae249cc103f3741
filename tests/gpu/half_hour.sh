#!/usr/bin/env bash
# What only a GPU can show, in half an hour: every output and record in one folder.
#
#   tests/gpu/half_hour.sh FOLDER [DATASET]
#
# DATASET is CIFAR-10 (the default, downloaded or in CONTRASTBENCH_DATA) or folder:PATH with its
# 60,000 images. Each part has a limit on its time and the next one follows whatever became of it;
# the same command again goes on with the trainings. In the environment: DEVICE (cuda), EPOCHS of
# the ResNet-18 (30), LIMIT of the last training in seconds (600); TINY=1 is a dry run of all parts:
#
#   DEVICE=cpu TINY=1 tests/gpu/half_hour.sh /tmp/dry digits
set -uo pipefail
out=${1:?name a folder for outputs and records}
dataset=${2:-CIFAR-10}
device=${DEVICE:-cuda} epochs=${EPOCHS:-30} limit=${LIMIT:-600}
small=${TINY:+--tiny}
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"

part() { # name, seconds, command: what it says goes to a file, how it ended to the summary
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    timeout --signal=TERM --kill-after=60 "$seconds" "$@" > "$out/$name.txt" 2>&1
    echo "$name: exit code $? after $((SECONDS - start)) s: $(tail -n 1 "$out/$name.txt")" |
        tee -a "$out/summary.txt"
}

train() { # name, seconds, options of the run
    local name=$1 seconds=$2
    shift 2
    part "$name" "$seconds" bench run --domain image --dataset "$dataset" --device "$device" \
        --results "$out" $small "$@"
}

part doctor 60 bench doctor
part check 620 bench check-device "$device" --results "$out" $small
part tests 300 python -m pytest -c "$here/pyproject.toml" --rootdir "$here" -m gpu "$here/tests/gpu"
if [ -n "$small" ]; then
    sets=(losses:dar graph:motifs image:digits tabular:breast_cancer)
else
    sets=(losses:infonce,adnce,hcl,debiased,mean_variance,rmlcpc graph:MUTAG,NCI1 image:digits tabular sentence:bert-base-uncased)
fi
for set in "${sets[@]}"; do
    what=${set%%:*} names=()
    [ "$what" = "$set" ] || IFS=, read -ra names <<< "${set#*:}"
    part "perf-$what" 180 bench perf "$what" "${names[@]}" --device "$device"
done
resnet18=(--recipe preset=adnce --recipe encoder=resnet18 --recipe epochs="$epochs" --recipe probe=lbfgs)
table12=(--recipe preset=adnce)
[ -z "$small" ] || resnet18=() table12=()
adnce=(--loss adnce --set temperature=0.4 --set mu=0.7 --set sigma=0.5)
train resnet18-infonce 600 --loss infonce --set temperature=0.5 "${resnet18[@]}"
train resnet18-adnce 600 "${adnce[@]}" "${resnet18[@]}"
# ADNCE's Table 12, as far as the time goes: what is stopped leaves a checkpoint beside the records
train table12-adnce "$limit" "${adnce[@]}" "${table12[@]}"
