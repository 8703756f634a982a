# C++ packages that come as Python packages: nlohmann_json (headers) and nanobind.
function(hipdnn_mlir_python_output variable code)
  execute_process(COMMAND "${Python_EXECUTABLE}" -c "${code}" OUTPUT_VARIABLE output OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status
                  ERROR_QUIET)
  if(NOT status EQUAL 0)
    set(output "")
  endif()
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()

find_package(nlohmann_json 3.10 CONFIG QUIET)
if(NOT TARGET nlohmann_json::nlohmann_json)
  hipdnn_mlir_python_output(json_headers
    "import importlib.metadata as m; print(next(f.locate().parent.parent for f in m.files('nlohmann-json') if f.name == 'json.hpp'))")
  if(NOT json_headers)
    message(FATAL_ERROR "nlohmann_json not found: install the system package, or `pip install nlohmann-json` for ${Python_EXECUTABLE}")
  endif()
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json SYSTEM INTERFACE "${json_headers}")
endif()

hipdnn_mlir_python_output(nanobind_directory "import nanobind; print(nanobind.cmake_dir())")
if(nanobind_directory)
  find_package(nanobind CONFIG REQUIRED PATHS "${nanobind_directory}" NO_DEFAULT_PATH)
else()
  message(FATAL_ERROR "nanobind not found: `pip install nanobind` for ${Python_EXECUTABLE}")
endif()
