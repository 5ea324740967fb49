"""``python -m unembed``, and what ``accelerate launch -m unembed train ...`` starts."""

from unembed.cli import main

main()
