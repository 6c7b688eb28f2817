#!/usr/bin/env bash
# Evaluates the differ and prints the tables: `./dev bench diff`. README.md explains their columns.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

usage() {
  cat <<'END'
usage: ./dev bench diff [OPTION…]

Builds, then measures the differ: speed, then mutated graphs of known lineage against known methods.

  --judge          seeds never used for tuning (2101 and 2102; default: 1 and 2)
  --graphs DIR     also mutate the FX texts in DIR
  --pairs DIR      also real pairs, DIR/KIND/CASE/{before,after}.txt: see bench/diff_eval/README.md
  --rates LIST     shares of the nodes that are mutated (default: 0.005,0.05)
  --all-kinds      also mutations that no accuracy gate uses
  --no-baselines   only the differ: a fifth of the time
  --adversarial    only graphs that are hard to match, up to a million nodes
END
}

seeds=(1 2) graphs=() pairs="" options=(--baselines)
while (($#)); do
  case $1 in
    --judge) seeds=(2101 2) ;;
    --graphs) graphs+=("$2") && shift ;;
    --pairs) pairs=$2 && shift ;;
    --rates) options+=(--rates "$2") && shift ;;
    --all-kinds) options+=(--all-kinds) ;;
    --no-baselines) options=("${options[@]/--baselines/}") ;;
    --adversarial) exec build/release/bin/strata bench diff --adversarial ;;
    -h | --help) usage; exit ;;
    *) echo "bench diff: error: unknown option: $1: see ./dev bench diff --help" >&2 && exit 2 ;;
  esac
  shift
done

bin=build/release/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/strata" bench diff

# Base graphs: those of the logs in tests/data, and traces of the bundled models.
number=0
for log in tests/data/logs/*.log.zst; do
  [[ -f $log && $log != *_49layers_* ]] || continue # 7,000 nodes: too slow for this number of mutations
  number=$((number + 1))
  "$bin/strata" export "$log" --fx "$work/log$number" 2>/dev/null || true
done
if [[ -x $bin/strata-runtime ]]; then
  for config in configs/demo_llama3.toml tests/data/numerics/*_tiny/config.json; do
    [[ -f $config ]] || continue
    number=$((number + 1))
    if timeout 60 "$bin/strata" train "$config" --set steps=1 --trace "$work/$number.strata" >/dev/null 2>&1; then
      "$bin/strata" export "$work/$number.strata" --fx "$work/own$number" 2>/dev/null || true
    fi
  done
fi
# Different graphs of 200 nodes and more, the largest first, a dozen at most.
mapfile -t texts < <(find "$work" -name '*.txt' -size +20k -exec md5sum {} + | sort | awk '!seen[$1]++ { print $2 }' |
  xargs -r ls -S | head -12)

echo
echo "mutations, seeds ${seeds[0]} to $((seeds[0] + seeds[1] - 1)), ${#texts[@]} graphs of logs and of the bundled models"
"$bin/diff_eval" synthetic "${texts[@]}" "${graphs[@]}" --seeds "${seeds[@]}" ${options[@]}
if [[ -n $pairs ]]; then
  echo
  echo "real pairs"
  "$bin/diff_eval" pairs "$pairs" ${options[@]}
fi
echo
"$bin/diff_eval" grouping --seeds "${seeds[0]}" 40
