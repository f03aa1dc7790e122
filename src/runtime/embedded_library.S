/* libddprof.so, stripped, so that this program is all that has to be downloaded. */
    .section .rodata
    .global ddprof_embedded_library
    .global ddprof_embedded_library_end
    .balign 16
ddprof_embedded_library:
    .incbin DDPROF_LIBRARY_FILE
ddprof_embedded_library_end:
    .section .note.GNU-stack, "", %progbits
