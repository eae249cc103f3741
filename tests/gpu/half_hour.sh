#!/usr/bin/env bash
# What only a GPU can show, in two halves of half an hour: every output and record in one folder.
#
#   tests/gpu/half_hour.sh FOLDER [DATASET]
#   HALF=suite tests/gpu/half_hour.sh FOLDER [DATASET]       # the second half alone; HALF=card: the first
#
# DATASET is CIFAR-10 (the default, downloaded or in CONTRASTBENCH_DATA) or folder:PATH with its
# 60,000 images. Each part has a limit on its time and the next one follows whatever became of it;
# the same command again goes on with the trainings.
#
# The first half checks and times the card, trains two losses on images, and begins the BERT rows of
# ADNCE's Table 4 and one cell of its Table 12.
# The second half is the image half of the suite: six rows by five seeds, a seed of all rows after
# the other, so that what is done is balanced wherever the time ends. Its last part says whether
# temperature 5 and pairs by class differ from infonce after Holm; the exit code is that of the part.
#
# In the environment: DEVICE (cuda), EPOCHS of the ResNet-18 (30), LIMIT of the trainings of each
# table in seconds (600); of the second half TEMPERATURE (0.2, as tuned), SUITE_EPOCHS (20),
# SUITE_LIMIT in seconds (1500), JOBS beside each other on the device (6). TINY=1 is a dry run of all
# parts but BERT:
#
#   DEVICE=cpu TINY=1 tests/gpu/half_hour.sh /tmp/dry digits
set -uo pipefail
out=${1:?name a folder for outputs and records}
dataset=${2:-CIFAR-10}
device=${DEVICE:-cuda} epochs=${EPOCHS:-30} limit=${LIMIT:-600} half=${HALF:-both}
temperature=${TEMPERATURE:-0.2} suite_epochs=${SUITE_EPOCHS:-20} suite_limit=${SUITE_LIMIT:-1500}
jobs=${JOBS:-6}
small=${TINY:+--tiny}
code=0
here=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$out"

part() { # name, seconds, command: what it says goes to a file, how it ended to the summary
    local name=$1 seconds=$2 start=$SECONDS
    shift 2
    timeout --signal=TERM --kill-after=60 "$seconds" "$@" > "$out/$name.txt" 2>&1
    code=$?
    echo "$name: exit code $code after $((SECONDS - start)) s: $(tail -n 1 "$out/$name.txt")" |
        tee -a "$out/summary.txt"
}

train() { # name, seconds, options of the run
    local name=$1 seconds=$2
    shift 2
    part "$name" "$seconds" bench run --domain image --dataset "$dataset" --device "$device" \
        --results "$out" $small "$@"
}

card() {
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
        part "perf-$what" 300 bench perf "$what" "${names[@]}" --device "$device"
    done
    resnet18=(--recipe preset=adnce --recipe encoder=resnet18 --recipe epochs="$epochs" --recipe probe=lbfgs)
    table12=(--recipe preset=adnce)
    [ -z "$small" ] || resnet18=() table12=()
    adnce=(--loss adnce --set temperature=0.4 --set mu=0.7 --set sigma=0.5)
    train resnet18-infonce 600 --loss infonce --set temperature=0.5 "${resnet18[@]}"
    train resnet18-adnce 600 "${adnce[@]}" "${resnet18[@]}"
    # a dry run leaves BERT out: its weights would have to be downloaded
    rows=(--only "row=SimCSE-BERT-base (tau0)" --only "row=SimCSE-BERT-base (tau*)" --only "row=ADNCE-BERT-base")
    [ -n "$small" ] || part table4-bert "$limit" bench sweep adnce-table4 "${rows[@]}" --seeds 0 \
        --device "$device" --results "$out" --check never
    # ADNCE's Table 12, as far as the time goes: what is stopped leaves a checkpoint beside the records
    train table12-adnce "$limit" "${adnce[@]}" "${table12[@]}"
}

suite() {
    local file=$out/suite.yaml seed recipe left end=$((SECONDS + suite_limit))
    recipe="preset: cpu, width: 0.5, precision: bf16, batch_size: 512, epochs: $suite_epochs"
    [ -z "$small" ] || recipe=
    cat > "$file" <<EOF
title: "the image half of the suite on one card, a ResNet-18 at half width"
seeds: 0-4
controls: [temperature 5, pairs by class]
losses:
  - infonce: {temperature: $temperature}
  - decoupled: {temperature: $temperature}
  - hcl: {temperature: $temperature}
  - adnce: {temperature: $temperature}
domains: {image: {datasets: ["$dataset": {$recipe}]}}
EOF
    for seed in 0 1 2 3 4; do
        left=$((end - SECONDS))
        [ "$left" -gt 0 ] || break
        part "suite-seed-$seed" "$left" bench sweep "$file" --seeds "$seed" --jobs "$jobs" \
            --device "$device" --results "$out" --check never $small
    done
    # a comparison shows no records of a dry run
    [ -n "$small" ] || part suite-compare 60 bench compare "$file" --results "$out"
    part suite-accepted 60 python "$here/tests/accepted.py" "$file" --results "$out" $small
}

[ "$half" = suite ] || card
[ "$half" = card ] || suite
exit "$code"
