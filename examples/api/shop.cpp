// A service that profiles itself and sends a profile every period to the agent, under its own name and tags.
//
//   c++ shop.cpp -o shop $(pkg-config --cflags --libs ddprof)      or CMake: find_package(ddprof),
//   ddprof::ddprof
//   ./shop http://localhost:8126 30
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ddprof.hpp>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

using Clock = std::chrono::steady_clock;

std::unordered_map<int, std::string> carts;

int find_best_price(int item) {
  int best = item;
  for (int i = 1; i < 200000; ++i) best = (best * 31 + i) % 1000003;
  return best;
}

void fill_cart(int customer) { carts[customer] = std::string(20000, 'x'); }

int serve(int request) {
  const ddprof::Label route("http.route", request % 2 == 0 ? "/price" : "/cart");
  if (request % 2 == 0) return find_best_price(request);
  fill_cart(request);
  return 0;
}

int main(int argc, char** argv) {
  ddprof::Options options;
  options.service = "shop";
  options.environment = "example";
  options.service_version = "1.2.3";
  options.tags = "team:checkout";
  options.preset = "cpu_live_heap";
  options.url = argc > 1 ? argv[1] : nullptr;
  options.upload_period = argc > 3 ? static_cast<uint32_t>(std::atoi(argv[3])) : 0;
  const ddprof::Session profiled(options);
  if (!profiled) std::fprintf(stderr, "not profiled: %s\n", ddprof_last_error());

  const auto end = Clock::now() + std::chrono::seconds(argc > 2 ? std::atoi(argv[2]) : 10);
  int sum = 0;
  for (int request = 0; Clock::now() < end; ++request) sum += serve(request);
  std::printf("%zu carts, %d\n", carts.size(), sum);
}
