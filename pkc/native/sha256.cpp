#include "sha256.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>

namespace pkc {

namespace {

using State = std::array<uint32_t, 8>;

// The first bits of the fractions of the cube roots of the first primes.
constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

void add_block(State &state, const unsigned char *block) {
    uint32_t words[64];
    for (int at = 0; at < 16; ++at, block += 4) words[at] = block[0] << 24 | block[1] << 16 | block[2] << 8 | block[3];
    for (int at = 16; at < 64; ++at) {
        const uint32_t early = words[at - 15], late = words[at - 2];
        words[at] = words[at - 16] + words[at - 7] + (std::rotr(early, 7) ^ std::rotr(early, 18) ^ early >> 3) +
                    (std::rotr(late, 17) ^ std::rotr(late, 19) ^ late >> 10);
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (int at = 0; at < 64; ++at) {
        const uint32_t chosen = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        const uint32_t late = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
        const uint32_t early = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
        const uint32_t first = h + late + chosen + kRounds[at] + words[at], second = early + majority;
        h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const State mixed = {a, b, c, d, e, f, g, h};
    std::transform(state.begin(), state.end(), mixed.begin(), state.begin(), std::plus<uint32_t>());
}

}  // namespace

std::string sha256(std::string data) {
    const uint64_t bits = 8 * static_cast<uint64_t>(data.size());
    data += '\x80';
    data.append((120 - data.size() % 64) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8) data += static_cast<char>(bits >> shift);
    State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    for (size_t at = 0; at < data.size(); at += 64)
        add_block(state, reinterpret_cast<const unsigned char *>(data.data()) + at);
    std::string found;
    for (const uint32_t word : state)
        for (int shift = 28; shift >= 0; shift -= 4) found += "0123456789abcdef"[word >> shift & 15];
    return found;
}

}  // namespace pkc
