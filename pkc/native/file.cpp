#include "file.hpp"

#include <cstring>
#include <fstream>
#include <iterator>

#include "mesh.hpp"
#include "sha256.hpp"

namespace pkc {

namespace {

// `pkc/version.py` has the version, too.
const std::string kMagic = "pkc artifact of ", kVersion = "0.1.0";
constexpr size_t kDigest = 64;

// A number as 8 bytes, the lowest first: hosts of GPUs have them so in memory.
std::string bytes_of(uint64_t number) { return {reinterpret_cast<const char *>(&number), sizeof number}; }

}  // namespace

File read_file(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.is_open()) throw Error(path + " cannot be read");
    if (!data.starts_with(kMagic)) throw Error(path + " was not written by `pkc compile --emit artifact`");
    const std::string first = kMagic + kVersion + "\n";
    if (!data.starts_with(first)) throw Error(path + " is not of version " + kVersion);
    const std::string digest = data.substr(first.size(), kDigest);
    if (digest.size() < kDigest) throw Error(path + " is damaged");
    const std::string content = data.substr(first.size() + kDigest);
    if (digest != sha256(bytes_of(content.size()) + content)) throw Error(path + " is damaged");
    uint64_t length;
    if (content.size() < sizeof length) throw Error(path + " is damaged");
    std::memcpy(&length, content.data(), sizeof length);
    if (length > content.size() - sizeof length) throw Error(path + " is damaged");
    try {
        const Json header = Json::parse(content.substr(sizeof length, length));
        check_header(header);
        return {header, content.substr(sizeof length + length)};
    } catch (const std::exception &error) {
        throw Error(path + " has a wrong header: " + error.what());
    }
}

}  // namespace pkc
