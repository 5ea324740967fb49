"""What vectors give away: their words at a glance, and an audit of their texts. Never writes to a vector database."""

from unembed.audit.result import Audit
from unembed.audit.run import AuditSettings, audit
from unembed.audit.words import WordReader

__all__ = ["Audit", "AuditSettings", "WordReader", "audit"]
