"""Passes over the module, one file each; `pipeline` is their ordered list."""
