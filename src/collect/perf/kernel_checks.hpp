#pragma once

#include <optional>

#include "base/result.hpp"
#include "collect/finding.hpp"
#include "collect/machine.hpp"
#include "collect/perf/own_privileges.hpp"

namespace ddprof {

// What the kernel offers, whoever asks.
Finding check_kernel(const Machine& machine);
Finding check_clock(const Machine& machine);
Finding check_sample_rate(const Machine& machine);
// What it offers to this process.
Finding check_kernel_names(const Machine& machine, const OwnPrivileges& privileges);
Finding check_tracefs(const Machine& machine);
Finding check_btf(const Machine& machine);
// `refusal`: why the program that reads what threads publish cannot be had; none: it can.
Finding check_bpf(const Machine& machine, const OwnPrivileges& privileges,
                  const std::optional<Error>& refusal);

}  // namespace ddprof
