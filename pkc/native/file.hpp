// What `pkc compile --emit artifact` writes, as `pkc.runtime.exported` packs it.

#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace pkc {

using Json = nlohmann::json;

struct File {
    Json header;
    std::string code;  // for the GPU
};

// Throws an `Error` if the file is not of this version, or damaged.
File read_file(const std::string &path);

}  // namespace pkc
