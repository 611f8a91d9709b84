// What a file says of its kernel: `pkc.codegen.artifact.Artifact` in JSON.

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

namespace pkc {

using Json = nlohmann::json;

constexpr int64_t kLongest = INT32_MAX;  // of a dimension: kernels have them as i32

// Throws if something is missing or has another type, or an axis or a name has nothing that it could mean: what follows
// looks things up without asking.
void check_header(const Json &header);

}  // namespace pkc
