"""Vectors in, texts out: the inverter, what it is made of, and the checks of what it is given."""

from unembed.inverter.inverter import Inversion, Inverter, make_options
from unembed.inverter.vectors import check_lengths, check_vectors

__all__ = ["Inversion", "Inverter", "check_lengths", "check_vectors", "make_options"]
