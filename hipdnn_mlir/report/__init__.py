"""What the compiler did, for people and for tools."""
