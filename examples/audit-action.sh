#!/usr/bin/env bash
# What action.yml runs: audits $SOURCE, adds the report to the job's summary, and turns the verdict into an exit code.
set -uo pipefail

options=(--output "$OUTPUT" --size "$SIZE" --guided "$GUIDED" --fail-over "$FAIL_OVER")
options+=(--format markdown --format sarif --format junit)
if [ -n "${BASELINE:-}" ]; then options+=(--baseline "$BASELINE"); fi
while IFS= read -r argument; do
  if [ -n "$argument" ]; then options+=("$argument"); fi
done <<< "${ARGUMENTS:-}"

unembed audit "$SOURCE" "${options[@]}"
code=$?

case $code in
  0) verdict=below ;;
  3) verdict=above ;;
  4) verdict=undecided ;;
  5) verdict=worse ;;
  *) verdict=failed ;;
esac
echo "verdict=$verdict" >> "${GITHUB_OUTPUT:-/dev/null}"
if [ -f "$OUTPUT/report.md" ] && [ "$verdict" != failed ]; then
  cat "$OUTPUT/report.md" >> "${GITHUB_STEP_SUMMARY:-/dev/null}"
fi
if [ "$verdict" = undecided ] && [ "${FAIL_IF_UNDECIDED:-true}" != true ]; then code=0; fi
exit $code
