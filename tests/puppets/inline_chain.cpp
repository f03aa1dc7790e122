// inline_chain SECONDS: work that compilers inline several levels deep, through templates, lambdas,
// algorithms of the standard library, namespaces and a class with virtual functions. What it computes does
// not matter, where its lines are does.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace warehouse {

template <typename T>
inline T mix(T value) {
  value ^= value >> 33;
  value *= 0xff51afd7ed558ccdULL;
  return value ^ (value >> 29);
}

struct Shelf {
  std::vector<std::uint64_t> boxes;

  inline std::uint64_t weight() const {
    return std::accumulate(boxes.begin(), boxes.end(), std::uint64_t{0},
                           [](std::uint64_t sum, std::uint64_t box) { return sum + mix(box); });
  }
};

namespace {

inline std::uint64_t heaviest(const std::vector<Shelf>& shelves) {
  std::uint64_t most = 0;
  for (const Shelf& shelf : shelves) most = std::max(most, shelf.weight());
  return most;
}

}  // namespace

class Robot {
 public:
  virtual ~Robot() = default;
  virtual std::uint64_t work(std::vector<Shelf>& shelves) = 0;
};

class Sorter final : public Robot {
 public:
  std::uint64_t work(std::vector<Shelf>& shelves) override {
    for (Shelf& shelf : shelves) {
      std::sort(shelf.boxes.begin(), shelf.boxes.end(),
                [](std::uint64_t a, std::uint64_t b) { return mix(a) < mix(b); });
      std::rotate(shelf.boxes.begin(), shelf.boxes.begin() + 7, shelf.boxes.end());
    }
    return heaviest(shelves);
  }
};

class Labeller final : public Robot {
 public:
  std::uint64_t work(std::vector<Shelf>& shelves) override {
    std::map<std::string, std::uint64_t> labels;
    for (const Shelf& shelf : shelves) labels[std::to_string(shelf.weight() % 97)] += shelf.boxes.front();
    return labels.begin()->second;
  }
};

}  // namespace warehouse

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  std::vector<warehouse::Shelf> shelves(64);
  std::uint64_t next = 1;
  for (auto& shelf : shelves) {
    for (int box = 0; box < 200; ++box) shelf.boxes.push_back(next = warehouse::mix(next + 1));
  }
  std::vector<std::unique_ptr<warehouse::Robot>> robots;
  robots.push_back(std::make_unique<warehouse::Sorter>());
  robots.push_back(std::make_unique<warehouse::Labeller>());
  std::uint64_t done = 0;
  while (static_cast<double>(std::clock()) / CLOCKS_PER_SEC < seconds) {
    for (auto& robot : robots) done += robot->work(shelves);
  }
  std::printf("%llu\n", static_cast<unsigned long long>(done));
}
