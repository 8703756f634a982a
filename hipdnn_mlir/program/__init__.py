"""The compiled program: its model in memory, its emission from buffers, its file."""
