// dlopen_user LIBRARY SECONDS [keep|unlink|close]: burns in a library that is loaded at run time. unlink: its
// file is deleted after loading (give it a copy). close: the library is unloaded again before the program
// ends.

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "burn.h"

NOINLINE void call_plugin(void (*burn)(uint64_t), uint64_t nanoseconds) {
  burn(nanoseconds);
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argument(argc, argv, 3, "keep");
  void* library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (strcmp(mode, "unlink") == 0 && unlink(argv[1]) != 0) return 1;
  void* symbol = dlsym(library, "burn_in_plugin");
  void (*burn)(uint64_t);
  memcpy(&burn, &symbol, sizeof burn);
  call_plugin(burn, seconds_to_ns(argv[2]));
  if (strcmp(mode, "close") == 0) dlclose(library);
  return 0;
}
