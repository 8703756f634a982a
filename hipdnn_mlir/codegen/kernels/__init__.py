"""A file for each kind of kernel."""
