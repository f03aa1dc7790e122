# Archives that Debian's packages ship, but that no CMake package names: static, as everything but libc.
foreach(name zstd lzma)
  find_library(${name}_archive NAMES lib${name}.a REQUIRED)
  add_library(ddprof_${name} INTERFACE)
  target_link_libraries(ddprof_${name} INTERFACE "${${name}_archive}")
endforeach()
