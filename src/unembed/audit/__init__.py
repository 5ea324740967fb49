"""What a store of vectors gives away: its words at a glance, and an audit of its texts. Writes nothing to a store."""

from unembed.audit.result import READABLE, Audit
from unembed.audit.run import Settings, audit
from unembed.audit.words import WordReader

__all__ = ["READABLE", "Audit", "Settings", "WordReader", "audit"]
