// A program with operators of its own, two of them, over memory that malloc() does not know: the library's
// other forms come to these.

#pragma GCC diagnostic ignored "-Wsized-deallocation"
#pragma GCC diagnostic ignored "-Wfree-nonheap-object"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace {

char pool[64 << 20];
size_t used;
long made, gone;

}  // namespace

void* operator new(size_t size) {
  ++made;
  void* block = pool + used;
  used += (size + 31) / 16 * 16;
  if (used > sizeof pool) abort();
  return block;
}

void operator delete(void* block) noexcept {
  const char* at = static_cast<char*>(block);
  if (at == nullptr) return;
  if (at < pool || at >= pool + used) abort();
  ++gone;
}

int main() {
  for (int i = 1; i < 1000; ++i) {
    auto* array = new char[static_cast<size_t>(i) * 100];
    delete[] array;
    delete new std::string(100, 'x');
    std::vector<int> numbers(static_cast<size_t>(i));
    delete[] new (std::nothrow) long[10];
    std::make_unique<double>(2.0).reset();
  }
  if (made != gone) return 1;
  puts("done");
  return 0;
}
