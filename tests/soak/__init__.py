"""A random load of every verb under SIGKILL, a full disk and a stepping clock, then the promises.

`scripts/soak` runs it; docs/adr/0024 says what a round is and why.
"""
