#!/usr/bin/env bash
# What only a GPU can show, in eleven minutes: every output and record in one folder.
#
#   tests/gpu/twelve_minutes.sh FOLDER [DATA]
#
# DATA is a data root with CIFAR-10, MUTAG and SentEval's STS sets; without it they are downloaded. Each
# part has a limit on its time, and the next one follows whatever became of it. The same command again skips the parts
# that ended well, and goes on with the trainings. Records are in FOLDER/runs, and FOLDER.tgz
# holds all that is worth keeping.
#
# In the environment: DEVICE (cuda), PARTS (all of them, by name), JOBS beside each other (14), ENCODER
# of sentences (bert-base-uncased, or a folder).
# TINY=1 is a dry run, which needs no data:
#
#   DEVICE=cpu TINY=1 tests/gpu/twelve_minutes.sh /tmp/dry
set -uo pipefail
out=${1:?name a folder for outputs and records}
here=$(cd "$(dirname "$0")/../.." && pwd)
device=${DEVICE:-cuda} jobs=${JOBS:-14} tiny=${TINY:+--tiny}
times=$([ "$tiny" ] && echo 5 || echo 1) # limits are those of a card: a dry run has more
parts=${PARTS:-doctor check tests capture losses image graph sentence large compare}
data=(${2:+--data-root "$2"})
mkdir -p "$out"

part() { # name, limit in seconds, command: what it says goes to a file, how it ended to the summary
    local name=$1 limit=$(($2 * times)) start=$SECONDS code
    shift 2
    [[ " $parts " == *" $name "* ]] || return 0
    if grep -qs "^$name: exit code 0 " "$out/summary.txt"; then return 0; fi
    timeout --signal=TERM --kill-after=10 "$limit" "$@" > "$out/$name.txt" 2>&1
    code=$?
    echo "$name: exit code $code after $((SECONDS - start)) s of $limit: $(tail -n 1 "$out/$name.txt")" |
        tee -a "$out/summary.txt"
}

bench() { # name, limit, words of bench
    local name=$1 limit=$2
    shift 2
    part "$name" "$limit" python -m contrastbench "$@"
}

sed "${tiny:+s/CIFAR-10: .*/digits/}" "$here/tests/gpu/large.yaml" > "$out/large.yaml"
train=("$out/large.yaml" --jobs "$jobs" --device "$device" --results "$out"
    $tiny ${data[@]+"${data[@]}"})
if [ -n "$tiny" ]; then image=digits graph=motifs sizes=64; else image=CIFAR-10 graph=MUTAG sizes="512 8192 65536"; fi

# small trainings beside each other share the card better under MPS, where its daemon starts
[ "$device" = cpu ] || nvidia-cuda-mps-control -d > "$out/mps.txt" 2>&1 || true

bench doctor 15 doctor
bench check 45 check-device "$device"
part tests 60 python -m pytest -q -c "$here/pyproject.toml" --rootdir "$here" -m gpu "$here/tests/gpu" \
    -k "not the_device_passes and not captured"
# steps as CUDA graphs: equal to ordinary ones to the bit, or this part fails
part capture 30 python -m pytest -q -c "$here/pyproject.toml" --rootdir "$here" -m gpu "$here/tests/gpu" \
    -k captured
bench losses 220 perf losses infonce adnce decoupled supcon siglip spectral $sizes --device "$device"
bench image 30 perf image "$image" --device "$device" ${data[@]+"${data[@]}"}
bench graph 20 perf graph "$graph" --device "$device" ${data[@]+"${data[@]}"}
# a smoke test downloads nothing
[ -n "$tiny" ] || bench sentence 90 perf sentence "${ENCODER:-bert-base-uncased}" --device "$device" \
    ${data[@]+"${data[@]}"}
bench large 140 sweep "${train[@]}"
# and fills no table, so there is nothing to compare
[ -n "$tiny" ] || bench compare 10 compare "$out/large.yaml" --results "$out"

[ "$device" = cpu ] || echo quit | nvidia-cuda-mps-control >> "$out/mps.txt" 2>&1 || true
tar -czf "$out.tgz" -C "$out" --exclude=checkpoints --exclude=claims .
