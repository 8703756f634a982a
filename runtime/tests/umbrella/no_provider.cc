// A library that is no provider.
extern "C" __attribute__((visibility("default"))) int NotAProvider() { return 0; }
