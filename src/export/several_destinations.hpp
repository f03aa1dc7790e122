#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "export/destination.hpp"

namespace ddprof {

// Every batch to each of them, in their order: those that always answer, such as files, come first. One
// that fails does not keep it from the others.
class SeveralDestinations final : public Destination {
 public:
  explicit SeveralDestinations(std::vector<std::unique_ptr<Destination>> destinations)
      : destinations_(std::move(destinations)) {}

  Result<Delivery> send(const Batch& batch) override;
  [[nodiscard]] std::string describe() const override;
  [[nodiscard]] DeliveryCounters counters() const override;
  void give_up() override;

 private:
  std::vector<std::unique_ptr<Destination>> destinations_;
};

}  // namespace ddprof
