# Toolchain for wheels that any Linux of 2018 or newer can use (manylinux_2_28). Clang, a static libc++ and the C library's symbols of that time
# come from the Python package ziglang, whose program the environment names: ZIG=.../ziglang/zig.
if(NOT DEFINED ENV{ZIG})
  message(FATAL_ERROR "ZIG is not set: run `make manylinux`, or set it to the program `zig` of the Python package ziglang")
endif()
set(target -target x86_64-linux-gnu.2.28)
set(CMAKE_C_COMPILER "$ENV{ZIG}" cc ${target})
set(CMAKE_CXX_COMPILER "$ENV{ZIG}" c++ ${target})
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -Wl,-s)
