#!/bin/sh
# The whole way in about two minutes: sentences -> vectors -> a tiny inverter -> the sentences again.
# The three sentences at the end were held out; their words were seen in other combinations only.
set -e
work=work/demo
mkdir -p "$work"
python examples/sentences.py --count 3000 > "$work/sentences.txt"
unembed prepare "$work/sentences.txt" --output "$work/corpus" --validation-share 0.03
unembed embed "$work/corpus" --output "$work/store"
rm -rf "$work/run"
unembed train configs/tiny.yaml --store "$work/store" --output "$work/run"
head -n 3 "$work/corpus/validation.txt" | tr '\n' '\0' | xargs -0 unembed invert --model "$work/run/best"
