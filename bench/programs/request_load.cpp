// request_load FILE SECONDS RATE SOCKET...: asks each server RATE times a second, at moments that are fixed
// before the start, whatever the servers do, so that a slow answer cannot delay (and so hide) the next
// request. The gaps are exponential, from a generator with a fixed seed: every run has the same moments. RATE
// 0 asks as fast as answers come, a few requests at a time, which shows the capacity. Writes three 64-bit
// numbers per answer into FILE: when the request was due (CLOCK_MONOTONIC), how much later its answer came
// (both ns), and the server. Prints how many were answered and how many were not, as JSON.

#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <vector>

#include "burn.h"

namespace {

constexpr uint64_t kSecond = 1000000000;
constexpr uint64_t kPatience = 10 * kSecond;
constexpr std::size_t kAtOnce = 6;  // outstanding requests that keep a server busy

struct Answer {
  uint64_t due;
  uint64_t latency;
  uint64_t server;
};

struct Server {
  int socket = -1;
  std::vector<uint64_t> due;
  std::size_t sent = 0;
  bool is_full = false;  // its queue takes no more for now
};

int connect_to(const char* path) {
  const int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un own{};
  own.sun_family = AF_UNIX;
  sockaddr_un server = own;
  strncpy(server.sun_path, path, sizeof server.sun_path - 1);
  // A name of the kernel's choice, for the answers.
  if (bind(socket_fd, reinterpret_cast<sockaddr*>(&own), sizeof(sa_family_t)) != 0) return -1;
  if (connect(socket_fd, reinterpret_cast<sockaddr*>(&server), sizeof server) != 0) return -1;
  return socket_fd;
}

std::vector<uint64_t> schedule(uint64_t start, double seconds, double rate, uint32_t seed) {
  std::vector<uint64_t> due;
  uint32_t state = seed * 2654435761u + 1;
  for (double at = 0;;) {
    const double chance = (next_random(&state) + 0.5) / 4294967296.0;
    at += -std::log(chance) / rate;
    if (at >= seconds) return due;
    due.push_back(start + static_cast<uint64_t>(at * 1e9));
  }
}

[[noreturn]] void give_up() {
  perror("ask a server");
  exit(1);
}

class Load {
 public:
  Load(std::vector<Server> servers, uint64_t end, bool is_saturating)
      : servers_(std::move(servers)), end_(end), is_saturating_(is_saturating) {}

  void run() {
    while (!is_done()) {
      for (Server& server : servers_) send_due(server);
      wait();
      for (std::size_t i = 0; i < servers_.size(); ++i) receive(i);
    }
  }
  const std::vector<Answer>& answers() const { return answers_; }
  uint64_t unanswered() const {
    uint64_t sent = 0;
    for (const Server& server : servers_) sent += is_saturating_ ? server.sent : server.due.size();
    return sent - answers_.size();
  }

 private:
  bool is_done() const {
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (is_saturating_) return now >= end_;
    return unanswered() == 0 || now >= end_ + kPatience;
  }

  void send_due(Server& server) {
    server.is_full = false;
    while (server.sent < server.due.size() && server.due[server.sent] <= clock_ns(CLOCK_MONOTONIC)) {
      const uint64_t number = server.sent;
      if (send(server.socket, &number, sizeof number, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno != EAGAIN) give_up();
        server.is_full = true;  // asked again when there is room; it was due now all the same
        return;
      }
      ++server.sent;
    }
  }

  void wait() {
    uint64_t next = clock_ns(CLOCK_MONOTONIC) + kSecond / 10;
    std::vector<pollfd> wanted;
    for (const Server& server : servers_) {
      wanted.push_back({server.socket, static_cast<short>(POLLIN | (server.is_full ? POLLOUT : 0)), 0});
      if (!server.is_full && server.sent < server.due.size()) next = std::min(next, server.due[server.sent]);
    }
    const uint64_t now = clock_ns(CLOCK_MONOTONIC);
    const uint64_t left = next > now ? next - now : 0;
    const timespec timeout{static_cast<time_t>(left / kSecond), static_cast<long>(left % kSecond)};
    ppoll(wanted.data(), wanted.size(), &timeout, nullptr);
  }

  void receive(std::size_t index) {
    Server& server = servers_[index];
    uint64_t number = 0;
    while (recv(server.socket, &number, sizeof number, MSG_DONTWAIT) == sizeof number) {
      const uint64_t now = clock_ns(CLOCK_MONOTONIC);
      answers_.push_back({server.due[number], now - server.due[number], index});
      if (is_saturating_) server.due.push_back(now);
    }
  }

  std::vector<Server> servers_;
  std::vector<Answer> answers_;
  uint64_t end_;
  bool is_saturating_;
};

// Clients are on other machines: here they must not wait for the servers' CPUs. Without the privilege, they
// do.
void run_before_others() {
  const sched_param priority{1};
  sched_setscheduler(0, SCHED_FIFO, &priority);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const double seconds = atof(argv[2]);
  const double rate = atof(argv[3]);
  const uint64_t start = clock_ns(CLOCK_MONOTONIC) + kSecond / 50;
  std::vector<Server> servers;
  for (int i = 4; i < argc; ++i) {
    Server& server = servers.emplace_back();
    server.socket = connect_to(argv[i]);
    if (server.socket < 0) return 1;
    server.due = rate > 0 ? schedule(start, seconds, rate, static_cast<uint32_t>(i))
                          : std::vector<uint64_t>(kAtOnce, start);
  }
  run_before_others();
  Load load(std::move(servers), start + seconds_to_ns(argv[2]), rate <= 0);
  load.run();
  FILE* file = fopen(argv[1], "wb");
  if (file == nullptr) return 1;
  fwrite(load.answers().data(), sizeof(Answer), load.answers().size(), file);
  fclose(file);
  printf("{\"start\": %llu, \"answered\": %zu, \"unanswered\": %llu}\n",
         static_cast<unsigned long long>(start), load.answers().size(),
         static_cast<unsigned long long>(load.unanswered()));
  return 0;
}
