# Toolchain for wheels that any Linux of 2018 or newer can use (manylinux_2_28). Clang, a static libc++ and the C library's symbols of that time
# come from the Python package ziglang, whose program the environment names: ZIG=.../ziglang/zig.
if(NOT DEFINED ENV{ZIG})
  message(FATAL_ERROR "ZIG is not set: run `make manylinux`, or set it to the program `zig` of the Python package ziglang")
endif()
set(target -target x86_64-linux-gnu.2.28)
set(CMAKE_C_COMPILER "$ENV{ZIG}" cc ${target})
set(CMAKE_CXX_COMPILER "$ENV{ZIG}" c++ ${target})
# Debian's Python has a header beside those of the system's C library, which must not be found.
file(GLOB python_headers /usr/include/x86_64-linux-gnu/python3*)
foreach(folder IN LISTS python_headers)
  get_filename_component(name "${folder}" NAME)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/python/x86_64-linux-gnu")
  file(CREATE_LINK "${folder}" "${CMAKE_BINARY_DIR}/python/x86_64-linux-gnu/${name}" SYMBOLIC)
endforeach()
# nanobind's headers use <cstdio> and leave it to Python's, which since 3.12 do not include it for the stable ABI.
set(CMAKE_CXX_FLAGS_INIT "-I${CMAKE_BINARY_DIR}/python -include cstdio")
set(CMAKE_SHARED_LINKER_FLAGS_INIT -Wl,-s)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -Wl,-s)
# Zig has an archiver, too, so that no binutils are needed.
set(CMAKE_AR "$ENV{ZIG}")
foreach(language C CXX)
  set(CMAKE_${language}_ARCHIVE_CREATE "<CMAKE_AR> ar qc <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_APPEND "<CMAKE_AR> ar q <TARGET> <LINK_FLAGS> <OBJECTS>")
  set(CMAKE_${language}_ARCHIVE_FINISH "<CMAKE_AR> ranlib <TARGET>")
endforeach()
