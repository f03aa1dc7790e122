// request_server SOCKET THREADS UNITS: a server whose requests cost a fixed amount of work, UNITS times a few
// microseconds, at the end of stacks of 48 frames. A request is a datagram, the answer is the same datagram.
// Says "ready" when it can be asked, and serves until it is killed.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "burn.h"

namespace {

constexpr int kDescending = 41;
constexpr std::size_t kFrameBytes = 128;

NOINLINE void serve_request(long units) {
  for (long i = 0; i < units; ++i) spin_briefly();
  KEEP_FRAME();
}

template <int depth>
NOINLINE void descend(long units) {
  char bytes[kFrameBytes];
  memset(bytes, depth, sizeof bytes);
  __asm__ volatile("" : : "r"(bytes) : "memory");
  if constexpr (depth == 0) {
    serve_request(units);
  } else {
    descend<depth - 1>(units);
  }
  __asm__ volatile("" : : "r"(bytes), "i"(depth) : "memory");
}

// Threads that wait on one socket are woken one at a time: a queue with several servers.
void serve(int socket, long units) {
  while (true) {
    char request[64];
    sockaddr_un client{};
    socklen_t size = sizeof client;
    const ssize_t length =
        recvfrom(socket, request, sizeof request, 0, reinterpret_cast<sockaddr*>(&client), &size);
    if (length < 0) return;
    descend<kDescending>(units);
    sendto(socket, request, static_cast<std::size_t>(length), 0, reinterpret_cast<sockaddr*>(&client), size);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int threads = atoi(argv[2]);
  const long units = atol(argv[3]);
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  strncpy(name.sun_path, argv[1], sizeof name.sun_path - 1);
  const int listening = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (bind(listening, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0) return 1;
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(serve, listening, units);
  puts("ready");
  fflush(stdout);
  serve(listening, units);
  return 1;
}
