"""Operators whose data decides how many rows they have: they fill a bound, and say how many rows count (adr/0054, adr/0062)."""
