"""The compiler: frontend, passes and emission in order, for one size or for many. Only this room knows the whole way."""
