"""Programs on Ray: real local clusters, real clients."""
