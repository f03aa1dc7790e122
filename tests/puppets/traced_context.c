// The variable through which a thread tells what it is doing (OTEP 4947), and who may set it. In the program
// itself, or in a library.
#include "traced_context.h"

__attribute__((visibility("default"))) __thread void* otel_thread_ctx_v1 = 0;

// More than the C library keeps free at a fixed distance: who loads this later has it somewhere else in every
// thread.
__attribute__((visibility("default"))) __thread char much_room[1 << 16];

__attribute__((visibility("default"))) void set_thread_context(void* record) {
  *(void* volatile*)&otel_thread_ctx_v1 = record;
}
