# Capstone, the disassembler of `ddprof report --annotate`, from Debian's archive.
find_path(capstone_headers capstone/capstone.h REQUIRED)
find_library(capstone_archive NAMES libcapstone.a REQUIRED)
add_library(ddprof_capstone INTERFACE)
target_include_directories(ddprof_capstone SYSTEM INTERFACE "${capstone_headers}")
target_link_libraries(ddprof_capstone INTERFACE "${capstone_archive}")
