# hipdnn_mlir_flags: what every target of this project is compiled and linked with.
add_library(hipdnn_mlir_flags INTERFACE)
target_compile_options(hipdnn_mlir_flags INTERFACE -Wall -Wextra -Wconversion)
if(HIPDNN_MLIR_WERROR)
  target_compile_options(hipdnn_mlir_flags INTERFACE -Werror)
endif()
if(HIPDNN_MLIR_SANITIZE)
  target_compile_options(hipdnn_mlir_flags INTERFACE -fsanitize=${HIPDNN_MLIR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(hipdnn_mlir_flags INTERFACE -fsanitize=${HIPDNN_MLIR_SANITIZE})
endif()
if(HIPDNN_MLIR_FUZZ AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_compile_options(hipdnn_mlir_flags INTERFACE -fsanitize=fuzzer-no-link)  # libFuzzer is guided by what has run
  target_link_options(hipdnn_mlir_flags INTERFACE -Wl,-z,undefs)  # clang has the sanitizers' functions in the program, not in libraries
endif()
# Files are compiled in batches, which takes half the time; -DCMAKE_UNITY_BUILD=OFF compiles each by itself.
if(NOT DEFINED CMAKE_UNITY_BUILD)
  set(CMAKE_UNITY_BUILD ON)
endif()
# Under sanitizers templates, compiled anew in each batch, take most of the time: a library is one batch.
if(HIPDNN_MLIR_SANITIZE AND NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(hipdnn_mlir_flags INTERFACE -Wno-subobject-linkage)  # takes the files of a batch for headers
endif()
