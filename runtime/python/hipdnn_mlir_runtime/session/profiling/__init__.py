"""Profiles of a session: the time of each step against what it computes and what the device reaches, as data, text and a trace."""
