# absl::flat_hash_map from Debian's archives. Its CMake package only names the shared libraries, and a profiler that
# needs libabsl_*.so.20220623 would run on nothing but Debian 12.
add_library(ddprof_absl INTERFACE)
foreach(name raw_hash_set hash city low_level_hash raw_logging_internal)
  find_library(absl_${name}_archive NAMES libabsl_${name}.a REQUIRED)
  target_link_libraries(ddprof_absl INTERFACE "${absl_${name}_archive}")
endforeach()
