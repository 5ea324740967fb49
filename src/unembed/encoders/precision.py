"""Whether bfloat16 pays, and whether its vectors are still the same. Knows no concrete encoder."""

import numpy as np
import torch

from unembed.measures import cosine

SAME = 0.999
"""The cosine with the float32 vector that every probe must exceed for bfloat16 to be chosen automatically."""
# Short and long, prose and lists, several scripts: what rounds worst differs between encoders.
PROBES = (
    "Hello!",
    "invoice 2024-117",
    "how to reset a router without losing its settings",
    "The patient was admitted on Tuesday with chest pain and discharged two days later.",
    "Dear Ms Okafor, your appointment with Dr Lindqvist has been moved to 14:30 on 3 May.",
    "def mean(values): return sum(values) / len(values)",
    "Prices rose by 3.2 % in March, after 2.9 % in February and 2.5 % in January, the statistics office said.",
    "Der Zug nach München hat wegen einer Weichenstörung etwa vierzig Minuten Verspätung.",
    "Le contrat prend fin le 31 décembre, sauf si l'une des parties le renouvelle par écrit.",
    "東京は今日は雨が降っています。",
    "Ей было тридцать лет, когда она впервые увидела море.",
    "red, green, blue, cyan, magenta, yellow, black",
    "I NEVER said that!!! Why would you even think so???",
    "a",
    "The committee, which had met eleven times since the autumn, could not agree on the budget; the chair therefore "
    "asked both sides to write down what they wanted, and adjourned the meeting until the following week.",
    "https://example.org/search?q=vector+database&page=2",
)


def has_native_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for bfloat16; elsewhere it is emulated, and slower than float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Not mkldnn's own check: it is content with AVX-512, where bfloat16 is emulated.
    checks = (getattr(torch.cpu, f"_is_{name}_supported", None) for name in ("avx512_bf16", "amx_tile"))
    return any(check is not None and check() for check in checks)


def least_cosine(expected: np.ndarray, given: np.ndarray) -> float:
    """Return the least cosine between the rows of two arrays (n, d)."""
    return float(cosine(given, expected).min())
