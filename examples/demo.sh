#!/bin/sh
# A sentence becomes 384 numbers, and the numbers become a sentence again: first from the vector alone, then with the
# encoder's help. Give a sentence of your own: make demo TEXT="..."
set -e
text=${DEMO_TEXT:-"We are getting divorced in the spring."}
echo "From the vector alone:"
unembed invert "$text"
echo
echo "With the encoder's help:"
unembed invert "$text" --guided
