"""The compiler in another process, for callers that must outlive it."""
