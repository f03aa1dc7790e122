# Capstone, the disassembler of `ddprof report --annotate`, from Debian's archive.
find_path(capstone_headers capstone/capstone.h REQUIRED)
find_library(capstone_archive NAMES libcapstone.a REQUIRED)
add_library(ddprof_capstone INTERFACE)
target_include_directories(ddprof_capstone SYSTEM INTERFACE "${capstone_headers}")
target_link_libraries(ddprof_capstone INTERFACE "${capstone_archive}")
# Its table of architectures names them all, which would add 4.5 MB of tables for processors that ddprof does not run on. An entry
# of zero is one that was not built in: cs_open() then says so. Which there are differs by version: the archive's own cs.c asks for them.
execute_process(COMMAND "${CMAKE_NM}" "${capstone_archive}" OUTPUT_VARIABLE capstone_symbols ERROR_QUIET COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL " U [A-Za-z0-9]+_(global_init|option)" capstone_tables "${capstone_symbols}")
list(REMOVE_DUPLICATES capstone_tables)
foreach(table ${capstone_tables})
  string(REPLACE " U " "" table "${table}")
  if(NOT table MATCHES "^(X86|AArch64)_")
    target_link_options(ddprof_capstone INTERFACE "LINKER:--defsym=${table}=0")
  endif()
endforeach()
