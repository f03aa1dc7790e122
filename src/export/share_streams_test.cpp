#include "export/datadog_peer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace ddprof {
namespace {

ProcessIdentity of_service(std::string name, std::string instance = {}) {
  ProcessIdentity identity;
  identity.service = std::move(name);
  identity.instance_id = std::move(instance);
  return identity;
}

class Streams : public testing::Test {
 protected:
  int ids_ = 0;
  ShareStreams streams_{"host-id", [this] { return fmt::format("id-{}", ids_++); }};
};

TEST_F(Streams, NumberTheUploadsOfEachShareFromZero) {
  streams_.begin_batch(0);
  EXPECT_EQ(streams_.next(of_service("shop")).sequence, 0U);
  streams_.begin_batch(1);
  EXPECT_EQ(streams_.next(of_service("shop")).sequence, 1U);
  EXPECT_EQ(streams_.next(of_service("bank")).sequence, 0U);
  streams_.begin_batch(2);
  EXPECT_EQ(streams_.next(of_service("bank")).sequence, 1U);
  streams_.begin_batch(3);
  EXPECT_EQ(streams_.next(of_service("shop")).sequence, 2U) << "it was not in the batch before";
}

TEST_F(Streams, HaveRuntimeIdsOfTheirOwn) {
  streams_.begin_batch(0);
  const std::string shop = streams_.next(of_service("shop")).runtime_id;
  EXPECT_NE(streams_.next(of_service("bank")).runtime_id, shop);
  EXPECT_EQ(streams_.next({}).runtime_id, "host-id");
  EXPECT_EQ(streams_.next(of_service("shop", "published")).runtime_id, "published");
  streams_.begin_batch(1);
  EXPECT_EQ(streams_.next(of_service("shop")).runtime_id, shop);
}

TEST_F(Streams, HaveAGapWhereABatchNeverCame) {
  streams_.begin_batch(5);
  EXPECT_EQ(streams_.next(of_service("shop")).sequence, 0U);
  streams_.begin_batch(8);
  EXPECT_EQ(streams_.next(of_service("shop")).sequence, 3U);
}

TEST_F(Streams, GoOnBehindThoseOfAnEarlierWorker) {
  streams_.begin_batch(240);
  streams_.begin_batch(241);
  EXPECT_EQ(streams_.next({}).sequence, 240U);
  EXPECT_EQ(streams_.next(of_service("shop", "published")).sequence, 240U);
  EXPECT_EQ(streams_.next(of_service("bank")).sequence, 0U) << "with an id that nobody has used";
}

TEST_F(Streams, AreBounded) {
  for (std::uint64_t batch = 0; batch <= ShareStreams::kMostStreams; ++batch) {
    streams_.begin_batch(batch);
    streams_.next(of_service(fmt::format("service-{}", batch)));
  }
  EXPECT_EQ(streams_.next(of_service("service-1")).sequence, 1U);
  EXPECT_EQ(streams_.next(of_service("service-0")).sequence, 0U) << "the oldest begins anew";
  EXPECT_EQ(ids_, static_cast<int>(ShareStreams::kMostStreams) + 2);
}

}  // namespace
}  // namespace ddprof
