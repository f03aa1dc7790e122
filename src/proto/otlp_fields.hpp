#pragma once

#include <cstdint>

// Field numbers of OTLP profiles, package v1development, as they are since opentelemetry-proto 1.10: earlier
// versions number the fields of Profile and Sample differently, and nothing on the wire says which is meant.
namespace ddprof::otlp_field {

enum Request : std::uint32_t { kResourceProfiles = 1, kDictionary = 2 };

enum Response : std::uint32_t { kPartialSuccess = 1 };

enum PartialSuccess : std::uint32_t { kRejectedProfiles = 1, kErrorMessage = 2 };

enum ResourceProfiles : std::uint32_t { kResource = 1, kScopeProfiles = 2 };

enum ScopeProfiles : std::uint32_t { kScope = 1, kProfiles = 2 };

enum Dictionary : std::uint32_t {
  kMappingTable = 1,
  kLocationTable = 2,
  kFunctionTable = 3,
  kLinkTable = 4,
  kStringTable = 5,
  kAttributeTable = 6,
  kStackTable = 7,
};

enum Profile : std::uint32_t {
  kSampleType = 1,
  kSamples = 2,
  kTimeUnixNano = 3,  // fixed64
  kDurationNano = 4,
  kPeriodType = 5,
  kPeriod = 6,
  kProfileAttributes = 11,
};

enum Sample : std::uint32_t {
  kSampleStack = 1,
  kSampleAttributes = 2,
  kSampleLink = 3,
  kSampleValues = 4,
  kSampleTimestamps = 5,  // fixed64
};

enum Stack : std::uint32_t { kStackLocations = 1 };

enum Location : std::uint32_t {
  kLocationMapping = 1,
  kLocationAddress = 2,
  kLocationLines = 3,
  kLocationAttributes = 4,
};

enum Line : std::uint32_t { kLineFunction = 1, kLineNumber = 2, kLineColumn = 3 };

enum Function : std::uint32_t {
  kFunctionName = 1,
  kFunctionSystemName = 2,
  kFunctionFile = 3,
  kFunctionStartLine = 4,
};

enum Mapping : std::uint32_t {
  kMappingStart = 1,
  kMappingLimit = 2,
  kMappingOffset = 3,
  kMappingPath = 4,
  kMappingAttributes = 5,
};

enum Link : std::uint32_t { kLinkTraceId = 1, kLinkSpanId = 2 };

enum ValueType : std::uint32_t { kType = 1, kUnit = 2 };

enum KeyValueAndUnit : std::uint32_t { kAttributeKey = 1, kAttributeValue = 2, kAttributeUnit = 3 };

enum Resource : std::uint32_t { kResourceAttributes = 1 };

enum Scope : std::uint32_t { kScopeName = 1, kScopeVersion = 2, kScopeAttributes = 3 };

enum KeyValue : std::uint32_t { kKey = 1, kValue = 2 };

enum AnyValue : std::uint32_t { kText = 1, kBool = 2, kInteger = 3, kArray = 5 };

enum ArrayValue : std::uint32_t { kArrayValues = 1 };

}  // namespace ddprof::otlp_field
