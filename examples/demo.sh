#!/bin/sh
# A sentence becomes 384 numbers, and the numbers become a sentence again: first from the vector alone, in a few passes
# and then with a search; at last with the encoder's help. Give a sentence of your own: make demo TEXT="..."
set -e
text=${DEMO_TEXT:-"We are getting divorced in the spring."}
echo "From the vector alone, in a few passes:"
unembed invert "$text"
echo
echo "From the vector alone, with a search:"
unembed invert "$text" --strategy surrogate
echo
echo "With the encoder's help:"
unembed invert "$text" --guided
