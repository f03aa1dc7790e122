#pragma once

#include <cstdint>

// Field numbers of perftools.profiles.Profile and its parts (google/pprof, proto/profile.proto).
namespace ddprof::pprof_field {

enum Profile : std::uint32_t {
  kSampleType = 1,
  kSample = 2,
  kMapping = 3,
  kLocation = 4,
  kFunction = 5,
  kStringTable = 6,
  kTimeNanos = 9,
  kDurationNanos = 10,
  kPeriodType = 11,
  kPeriod = 12,
  kComment = 13,
  kDefaultSampleType = 14,
  kDocUrl = 15,
};

enum ValueType : std::uint32_t { kType = 1, kUnit = 2 };

enum Sample : std::uint32_t { kSampleLocationId = 1, kSampleValue = 2, kSampleLabel = 3 };

enum Label : std::uint32_t { kLabelKey = 1, kLabelText = 2, kLabelNumber = 3, kLabelUnit = 4 };

enum Mapping : std::uint32_t {
  kMappingId = 1,
  kMappingStart = 2,
  kMappingLimit = 3,
  kMappingOffset = 4,
  kMappingPath = 5,
  kMappingBuildId = 6,
  kMappingHasFunctions = 7,
  kMappingHasFilenames = 8,
  kMappingHasLines = 9,
  kMappingHasInlines = 10,
};

enum Location : std::uint32_t {
  kLocationId = 1,
  kLocationMapping = 2,
  kLocationAddress = 3,
  kLocationLine = 4
};

enum Line : std::uint32_t { kLineFunction = 1, kLineNumber = 2, kLineColumn = 3 };

enum Function : std::uint32_t {
  kFunctionId = 1,
  kFunctionName = 2,
  kFunctionSystemName = 3,
  kFunctionFile = 4,
  kFunctionStartLine = 5,
};

}  // namespace ddprof::pprof_field
