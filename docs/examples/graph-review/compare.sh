#!/bin/sh
# compare.sh BEFORE AFTER POLICY OUT [LINK]
#
# Compares two graphs, or all graphs of two folders of logs, for a pull request. Writes OUT/comment.md,
# OUT/report.html, OUT/diff.json and, of two graphs, OUT/change.patch.
# Exit status of `strata diff`: 0 the policy allows the change, 1 it does not, 2 error.
set -u
before=$1 after=$2 policy=$3 out=$4 link=${5-}
mkdir -p "$out" || exit 2

patch="$out/change.patch"
test -d "$before" && patch=
strata diff "$before" "$after" --policy "$policy" --format md ${link:+--link "$link"} ${patch:+--patch "$patch"} \
  > "$out/comment.md"
status=$?
if [ "$status" -gt 1 ]; then
  echo "The graphs could not be compared; the log of the job tells why." > "$out/comment.md"
  exit "$status"
fi
strata diff "$before" "$after" --policy "$policy" --format json > "$out/diff.json"
strata diff "$before" "$after" --format html > "$out/report.html"
exit "$status"
