# Capstone, the disassembler of `ddprof report --annotate`, from Debian's archive.
find_path(capstone_headers capstone/capstone.h REQUIRED)
find_library(capstone_archive NAMES libcapstone.a REQUIRED)
add_library(ddprof_capstone INTERFACE)
target_include_directories(ddprof_capstone SYSTEM INTERFACE "${capstone_headers}")
target_link_libraries(ddprof_capstone INTERFACE "${capstone_archive}")
# Its table of architectures names them all, which would add 4.5 MB of tables for processors that ddprof does not run on. An entry
# of zero is one that was not built in: cs_open() then says so.
foreach(architecture ARM EVM M680X M68K Mips PPC Sparc SystemZ TMS320C64x XCore)
  target_link_options(ddprof_capstone INTERFACE
    "LINKER:--defsym=${architecture}_global_init=0" "LINKER:--defsym=${architecture}_option=0")
endforeach()
