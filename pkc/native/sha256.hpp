// The digest that files carry.

#pragma once

#include <string>

namespace pkc {

// SHA-256 in hexadecimal.
std::string sha256(std::string data);

}  // namespace pkc
