#include "export/spool.hpp"

#include <gtest/gtest.h>

#include <string_view>

namespace ddprof {
namespace {

UploadRequest small_request() {
  return {.sequence = 7,
          .start = Nanoseconds(1'714'564'800'000'000'000),
          .end = Nanoseconds(1'714'564'802'000'000'000),
          .query = "name=shop",
          .content_type = "multipart/form-data; boundary=\"b\"",
          .headers = {{"Datadog-Entity-ID", "ci-1"}, {"Content-Encoding", "gzip"}},
          .body = std::string("\n: \0\xff head-checksum: 1\n", 24)};
}

Result<UploadRequest> read(std::string_view file) { return read_request(std::as_bytes(std::span(file))); }

void expect_same(const Result<UploadRequest>& read, const UploadRequest& request) {
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->sequence, request.sequence);
  EXPECT_EQ(read->start, request.start);
  EXPECT_EQ(read->end, request.end);
  EXPECT_EQ(read->query, request.query);
  EXPECT_EQ(read->content_type, request.content_type);
  EXPECT_EQ(read->headers, request.headers);
  EXPECT_EQ(read->body, request.body);
}

TEST(RequestFile, IsReadAsItWasWritten) {
  expect_same(read(write_request(small_request())), small_request());
  const UploadRequest empty;
  expect_same(read(write_request(empty)), empty);
  UploadRequest early = small_request();
  early.start = Nanoseconds(-1);  // a clock that was never set
  expect_same(read(write_request(early)), early);
}

TEST(RequestFile, IsRefusedWhereverItIsCut) {
  const std::string file = write_request(small_request());
  for (std::size_t size = 0; size < file.size(); ++size)
    EXPECT_FALSE(read(file.substr(0, size)).ok()) << size;
}

TEST(RequestFile, IsRefusedWithAnyByteChanged) {
  const std::string file = write_request(small_request());
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (unsigned change = 1; change < 256; ++change) {
      std::string changed = file;
      changed[at] = static_cast<char>(static_cast<unsigned char>(changed[at]) ^ change);
      EXPECT_FALSE(read(changed).ok()) << at << " ^ " << change;
    }
  }
}

TEST(RequestFile, IsRefusedWithSomethingBehindIt) {
  EXPECT_FALSE(read(write_request(small_request()) + "x").ok());
  EXPECT_FALSE(read(write_request(small_request()) + write_request(small_request())).ok());
}

TEST(RequestFile, KeepsEachFieldOnItsLine) {
  UploadRequest request = small_request();
  request.query = "a\nbody-bytes: 0";
  request.headers = {{"X", "1\r\nY: 2"}};
  const auto again = read(write_request(request));
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(again->query, "a body-bytes: 0");
  EXPECT_EQ(again->headers, (HttpHeaders{{"X", "1  Y: 2"}}));
  EXPECT_EQ(again->body, request.body);
}

}  // namespace
}  // namespace ddprof
