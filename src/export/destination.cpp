#include "export/destination.hpp"

namespace ddprof {

DeliveryCounters& DeliveryCounters::operator+=(const DeliveryCounters& other) {
  arrived += other.arrived;
  bytes += other.bytes;
  retries += other.retries;
  waiting += other.waiting;
  waiting_bytes += other.waiting_bytes;
  dropped += other.dropped;
  return *this;
}

}  // namespace ddprof
