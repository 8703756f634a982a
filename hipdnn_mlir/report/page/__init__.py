"""The HTML page about a program: facts from a program file, a layout of its graph, one file without any link to a network."""
