"""Limits that the compiler and sessions share."""

MAX_SIZE = 1 << 48
