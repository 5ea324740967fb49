"""What can be done to vectors before they are stored, so that they give less away. Knows arrays, and no inverter."""

from unembed.defences.chain import (
    TRANSFORMS,
    Chain,
    ChainStep,
    check_chain,
    count_different,
    describe_chain,
    parse_chain,
    refuse_useless,
)
from unembed.defences.defence import DEFENCES, Defence, Description, Kind, apply, neighbours_kept, words_leaked
from unembed.defences.key import read_chain, write_chain
from unembed.defences.transform import Transform

__all__ = [
    "DEFENCES",
    "TRANSFORMS",
    "Chain",
    "ChainStep",
    "Defence",
    "Description",
    "Kind",
    "Transform",
    "apply",
    "check_chain",
    "count_different",
    "describe_chain",
    "neighbours_kept",
    "parse_chain",
    "read_chain",
    "refuse_useless",
    "words_leaked",
    "write_chain",
]
