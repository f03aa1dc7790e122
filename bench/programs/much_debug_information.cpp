// One of many units of a program whose debug information is large: templates of the standard library,
// instantiated for types of its own. UNIT is its number.

#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#define GLUE_NOW(a, b) a##b
#define GLUE(a, b) GLUE_NOW(a, b)
#define UNIT_NAMESPACE GLUE(unit_, UNIT)

namespace UNIT_NAMESPACE {

template <int N>
struct Key {
  int number = 0;
  std::string text;
  auto fields() const { return std::tie(number, text); }
  friend bool operator<(const Key& left, const Key& right) { return left.fields() < right.fields(); }
  friend bool operator==(const Key& left, const Key& right) { return left.fields() == right.fields(); }
};

template <int N>
struct KeyHash {
  std::size_t operator()(const Key<N>& key) const { return std::hash<std::string>()(key.text); }
};

template <int N>
std::size_t work(int seed) {
  std::map<Key<N>, std::vector<Key<N>>> ordered;
  std::unordered_map<Key<N>, std::optional<Key<N>>, KeyHash<N>> hashed;
  std::set<Key<N>> keys;
  std::deque<Key<N>> queue;
  std::list<Key<N>> list;
  std::mt19937 random(static_cast<unsigned>(seed));
  for (int i = 0; i < 50; ++i) {
    Key<N> key{static_cast<int>(random() % 1000), std::to_string(random())};
    ordered[key].push_back(key);
    hashed[key] = key;
    keys.insert(key);
    queue.push_front(key);
    list.push_back(key);
  }
  std::vector<Key<N>> all(queue.begin(), queue.end());
  std::sort(all.begin(), all.end());
  std::stable_sort(queue.begin(), queue.end(),
                   [](const auto& left, const auto& right) { return left.text < right.text; });
  list.sort();
  std::variant<Key<N>, std::vector<Key<N>>> either = all;
  std::function<std::size_t(const Key<N>&)> size = [&](const Key<N>& key) {
    return key.text.size() + hashed.size();
  };
  std::size_t total = std::transform_reduce(all.begin(), all.end(), either.index(), std::plus<>(), size);
  std::ostringstream out;
  for (auto& [key, values] : ordered) out << key.text << values.size() << N;
  auto shared = std::make_shared<std::map<std::string, Key<N>>>();
  for (auto& key : all) shared->emplace(key.text, key);
  return total + out.str().size() + shared->size();
}

std::size_t match(const std::string& text) {
  static const std::regex pattern("([a-z]+)[0-9]*(x|y)" + std::to_string(UNIT));
  std::smatch found;
  return std::regex_search(text, found, pattern) ? found.size() : text.size();
}

}  // namespace UNIT_NAMESPACE

std::size_t GLUE(run_, UNIT)(int seed, const std::string& text) {
  using namespace UNIT_NAMESPACE;
  auto later = std::async(std::launch::deferred, [&] { return match(text); });
  return work<0>(seed) + work<1>(seed) + work<2>(seed) + work<3>(seed) + later.get();
}
