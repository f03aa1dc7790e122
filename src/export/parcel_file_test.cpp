#include "export/parcel_file.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace ddprof {
namespace {

Parcel small_parcel() {
  return {.sequence = 7,
          .start = Nanoseconds(1'714'564'800'000'000'000),
          .end = Nanoseconds(1'714'564'802'000'000'000),
          .query = "name=shop",
          .content_type = "multipart/form-data; boundary=\"b\"",
          .headers = {{"Datadog-Entity-ID", "ci-1"}, {"Content-Encoding", "gzip"}},
          .body = std::string("\n: \0\xff head-checksum: 1\n", 24)};
}

Result<Parcel> read(std::string_view file) { return read_parcel(std::as_bytes(std::span(file))); }

void expect_same(const Result<Parcel>& read, const Parcel& parcel) {
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sequence, parcel.sequence);
  EXPECT_EQ(read->start, parcel.start);
  EXPECT_EQ(read->end, parcel.end);
  EXPECT_EQ(read->query, parcel.query);
  EXPECT_EQ(read->content_type, parcel.content_type);
  EXPECT_EQ(read->headers, parcel.headers);
  EXPECT_EQ(read->body, parcel.body);
}

TEST(ParcelFile, IsReadAsItWasWritten) {
  expect_same(read(write_parcel(small_parcel())), small_parcel());
  const Parcel empty;
  expect_same(read(write_parcel(empty)), empty);
  Parcel early = small_parcel();
  early.start = Nanoseconds(-1);  // a clock that was never set
  expect_same(read(write_parcel(early)), early);
}

TEST(ParcelFile, IsRefusedWhereverItIsCut) {
  const std::string file = write_parcel(small_parcel());
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(read(file.substr(0, size)).ok()) << size;
}

TEST(ParcelFile, IsRefusedWithAnyByteChanged) {
  const std::string file = write_parcel(small_parcel());
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (unsigned change = 1; change < 256; ++change) {
      std::string changed = file;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ change);
      EXPECT_FALSE(read(changed).ok()) << at << " ^ " << change;
    }
  }
}

TEST(ParcelFile, IsRefusedWithSomethingBehindIt) {
  EXPECT_FALSE(read(write_parcel(small_parcel()) + "x").ok());
  EXPECT_FALSE(read(write_parcel(small_parcel()) + write_parcel(small_parcel())).ok());
}

TEST(ParcelFile, KeepsEachFieldOnItsLine) {
  Parcel parcel = small_parcel();
  parcel.query = "a\nbody-bytes: 0";
  parcel.headers = {{"X", "1\r\nY: 2"}};
  const auto again = read(write_parcel(parcel));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->query, "a body-bytes: 0");
  EXPECT_EQ(again->headers, (HttpHeaders{{"X", "1  Y: 2"}}));
  EXPECT_EQ(again->body, parcel.body);
}

}  // namespace
}  // namespace ddprof
