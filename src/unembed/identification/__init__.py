"""Which known encoder made some vectors. Knows encoders and fingerprints, no inverters."""

from unembed.identification.identify import Candidate, Identification, Verdict, identify
from unembed.identification.known import KnownVectors, installed_encoders, known_vectors

__all__ = [
    "Candidate",
    "Identification",
    "KnownVectors",
    "Verdict",
    "identify",
    "installed_encoders",
    "known_vectors",
]
