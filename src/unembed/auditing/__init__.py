"""What vectors give away: their words at a glance, and an audit of their texts. Never writes to a vector database."""

from unembed.auditing.call import audit
from unembed.auditing.result import Audit
from unembed.auditing.run import AuditSettings, run_audit
from unembed.auditing.words import WordReader

__all__ = ["Audit", "AuditSettings", "WordReader", "audit", "run_audit"]
