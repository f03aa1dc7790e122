# find_package(ddprof), target ddprof::ddprof: the library that a program profiles itself with (ddprof.h, ddprof.hpp).
if(NOT TARGET ddprof::ddprof)
  get_filename_component(ddprof_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(ddprof::ddprof SHARED IMPORTED)
  set_target_properties(ddprof::ddprof PROPERTIES IMPORTED_LOCATION "${ddprof_prefix}/lib/libddprof.so" IMPORTED_SONAME libddprof.so
    INTERFACE_INCLUDE_DIRECTORIES "${ddprof_prefix}/include")
  unset(ddprof_prefix)
endif()
