// What plays know of the fake driver.

#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace fake {

extern size_t struct_bytes;  // of a launch

// The call that fails once, after so many of its calls have succeeded.
extern std::string failing;
extern int successes;

// What is loaded, created and mapped.
extern int libraries, handles;
extern std::set<unsigned long long> mapped;

}  // namespace fake
