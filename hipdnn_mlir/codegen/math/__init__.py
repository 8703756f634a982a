"""Elementary functions in GPU instructions."""
