// What `pkc compile --emit artifact` writes, as `pkc.runtime.exported` packs it.

#pragma once

#include <string>

#include "header.hpp"

namespace pkc {

struct File {
    Json header;
    std::string code;  // for the GPU
};

// Throws an `Error` if the file is not of this version, or damaged, or its header is not right.
File read_file(const std::string &path);

}  // namespace pkc
