# absl::flat_hash_map from Debian's archives. Its CMake package only names the shared libraries, and a profiler that
# needs libabsl_*.so.20220623 would run on nothing but Debian 12. Which archives it takes differs by version: pkg-config knows them.
find_package(PkgConfig REQUIRED)
pkg_check_modules(absl REQUIRED absl_flat_hash_map)
add_library(ddprof_absl INTERFACE)
foreach(name ${absl_STATIC_LIBRARIES})
  if(name MATCHES "^absl_")
    find_library(${name}_archive NAMES lib${name}.a REQUIRED)
    target_link_libraries(ddprof_absl INTERFACE "${${name}_archive}")
  endif()
endforeach()
