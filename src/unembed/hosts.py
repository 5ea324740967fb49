"""Which hosts are this machine. Knows nothing of what is sent."""

LOOPBACK = {"localhost", "127.0.0.1", "::1"}
