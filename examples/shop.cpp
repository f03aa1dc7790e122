// A small shop: the program that `make demo` profiles. Four workers take orders from a queue; each order is
// parsed, priced, checked against a blocklist with regular expressions, and rendered. One of these costs far
// more than anybody would guess from reading the code, which is what profilers are for. And the shop never
// gives some of its memory back.
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace shop {

struct Order {
  std::string customer;
  std::vector<std::pair<std::string, int>> items;
};

std::string make_order_text(unsigned seed) {
  static const char* const goods[] = {"tea", "coffee", "sugar", "milk", "bread", "honey"};
  std::string text = "customer-" + std::to_string(seed % 97) + "@example.org";
  for (unsigned i = 0; i < 4 + seed % 5; ++i) {
    text += ";" + std::string(goods[(seed + i) % 6]) + "=" + std::to_string(1 + (seed >> i) % 9);
  }
  return text;
}

Order parse_order(const std::string& text) {
  Order order;
  std::istringstream fields(text);
  std::getline(fields, order.customer, ';');
  for (std::string field; std::getline(fields, field, ';');) {
    std::size_t equals = field.find('=');
    order.items.emplace_back(field.substr(0, equals), std::atoi(field.c_str() + equals + 1));
  }
  return order;
}

double price_order(const Order& order) {
  static const std::map<std::string, double> prices = {{"tea", 4.2},  {"coffee", 6.1}, {"sugar", 0.9},
                                                       {"milk", 1.1}, {"bread", 2.4},  {"honey", 5.5}};
  return std::accumulate(order.items.begin(), order.items.end(), 0.0, [](double sum, const auto& item) {
    return sum + prices.at(item.first) * item.second;
  });
}

// The surprise: a regular expression is compiled for every order.
bool is_blocked(const Order& order) {
  const std::regex blocked("^(spam|customer-13)[^@]*@example\\.(org|com)$");
  return std::regex_match(order.customer, blocked);
}

std::string render_receipt(const Order& order, double total) {
  std::ostringstream out;
  for (const auto& [name, count] : order.items) out << name << " x " << count << '\n';
  out << "total " << total << '\n';
  return out.str();
}

// The leak: receipts are kept in case that somebody wants another copy, and nobody ever does.
void keep_receipt(std::vector<std::string>& archive, std::string receipt) {
  receipt.reserve(1000);  // room for a signature
  archive.push_back(std::move(receipt));
}

std::uint64_t serve(unsigned worker, std::chrono::steady_clock::time_point until) {
  std::uint64_t bytes = 0;
  static auto* const archives = new std::vector<std::string>[4];
  for (unsigned number = worker; std::chrono::steady_clock::now() < until; number += 4) {
    Order order = parse_order(make_order_text(number));
    if (is_blocked(order)) continue;
    std::string receipt = render_receipt(order, price_order(order));
    bytes += receipt.size();
    keep_receipt(archives[worker], std::move(receipt));
  }
  return bytes;
}

}  // namespace shop

int main(int argc, char** argv) {
  int seconds = argc > 1 ? std::atoi(argv[1]) : 3;
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  std::vector<std::thread> workers;
  std::vector<std::uint64_t> bytes(4);
  for (unsigned i = 0; i < 4; ++i) {
    workers.emplace_back([&bytes, i, until] { bytes[i] = shop::serve(i, until); });
    pthread_setname_np(workers.back().native_handle(), ("worker " + std::to_string(i)).c_str());
  }
  for (std::thread& worker : workers) worker.join();
  std::printf("served %.1f MB of receipts\n",
              static_cast<double>(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0})) / 1e6);
}
