"""What can be done to vectors before they are stored, so that they give less away. Knows arrays, and no inverter."""

from unembed.defences.defence import DEFENCES, Defence, Description, Kind, apply

__all__ = ["DEFENCES", "Defence", "Description", "Kind", "apply"]
