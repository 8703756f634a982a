"""Runs programs: sessions, arrays, devices. Never calls the compiler: it is given what compiles again."""
